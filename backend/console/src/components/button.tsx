import type { ComponentChildren, JSX } from "preact";
import { Icon, type IconName } from "./icons";

interface ButtonProps {
  children?: ComponentChildren;
  /** Needed where the button shows an icon alone; it is its tooltip, too. */
  label?: string;
  icon?: IconName;
  kind?: "plain" | "primary" | "quiet" | "danger";
  type?: "button" | "submit";
  disabled?: boolean;
  pressed?: boolean;
  expanded?: boolean;
  onClick?: (event: MouseEvent) => void;
}

export function Button({ children, label, icon, kind = "plain", type = "button", disabled, pressed, expanded, onClick }: ButtonProps): JSX.Element {
  const isIconOnly = children === undefined;
  return (
    <button
      type={type}
      class={`button ${kind}${isIconOnly ? " square" : ""}`}
      disabled={disabled ?? false}
      {...(label ? { "aria-label": label, title: label } : {})}
      {...(pressed === undefined ? {} : { "aria-pressed": pressed })}
      {...(expanded === undefined ? {} : { "aria-expanded": expanded })}
      {...(onClick ? { onClick } : {})}
    >
      {icon && <Icon name={icon} />}
      {children !== undefined && <span>{children}</span>}
    </button>
  );
}
