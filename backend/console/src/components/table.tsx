import type { ComponentChildren, JSX } from "preact";

export interface Column<Row> {
  head: string;
  cell: (row: Row) => ComponentChildren;
  /** Figures stand at the right, so that they can be compared. */
  numeric?: boolean;
}

interface TableProps<Row> {
  /** What the table shows, for screen readers. */
  caption: string;
  columns: Column<Row>[];
  rows: Row[];
  keyOf: (row: Row) => string;
}

/** A table that scrolls sideways by itself where the page is too narrow for it. */
export function Table<Row>({ caption, columns, rows, keyOf }: TableProps<Row>): JSX.Element {
  return (
    <div class="table-frame" tabindex={0} role="region" aria-label={caption}>
      <table>
        <caption class="unseen">{caption}</caption>
        <thead>
          <tr>
            {columns.map((each) => (
              <th key={each.head} scope="col" class={each.numeric ? "numeric" : ""}>{each.head}</th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={keyOf(row)}>
              {columns.map((each) => (
                <td key={each.head} class={each.numeric ? "numeric" : ""}>{each.cell(row)}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
