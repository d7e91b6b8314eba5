// What a person has dropped or chosen: files, and folders with all that is in them.

export interface GivenFile {
  /** With the folders above it, as in `handbook/on-call.md`. */
  name: string;
  file: File;
}

export interface Given {
  files: GivenFile[];
  /** How many were left out, because their names or folders begin with a dot. */
  hidden: number;
}

function given(files: GivenFile[]): Given {
  const shown = files.filter((each) => !each.name.split("/").some((part) => part.startsWith(".")));
  return { files: shown, hidden: files.length - shown.length };
}

export function fromInput(input: HTMLInputElement): Given {
  return given([...(input.files ?? [])].map((file) => ({ name: file.webkitRelativePath || file.name, file })));
}

/** Read what was dropped. The entries must be taken before anything is waited for: the browser forgets them then. */
export async function fromDrop(dropped: DataTransfer): Promise<Given> {
  const entries = [...dropped.items].map((item) => item.webkitGetAsEntry()).filter((entry) => entry !== null);
  return given((await Promise.all(entries.map(filesOf))).flat());
}

async function filesOf(entry: FileSystemEntry): Promise<GivenFile[]> {
  if (isFile(entry)) {
    const file = await new Promise<File>((resolve, reject) => entry.file(resolve, reject));
    return [{ name: entry.fullPath.replace(/^\//, ""), file }];
  }
  if (!isFolder(entry)) return [];
  const reader = entry.createReader();
  const found: GivenFile[] = [];
  for (;;) {
    // A reader gives some entries at a time, and none at the end.
    const some = await new Promise<FileSystemEntry[]>((resolve, reject) => reader.readEntries(resolve, reject));
    if (some.length === 0) return found;
    for (const each of some) found.push(...(await filesOf(each)));
  }
}

const isFile = (entry: FileSystemEntry): entry is FileSystemFileEntry => entry.isFile;
const isFolder = (entry: FileSystemEntry): entry is FileSystemDirectoryEntry => entry.isDirectory;
