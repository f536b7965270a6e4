/** Pieces of Markdown pages that are made of tables in the code. */

/** A table whose columns are padded to one width. */
export function table(header: readonly string[], rows: readonly (readonly string[])[]): string {
  const all = [header, ...rows];
  const widths = header.map((_, column) =>
    Math.max(3, ...all.map((row) => row[column]?.length ?? 0)),
  );
  const line = (cells: readonly string[]): string =>
    `| ${widths.map((width, column) => (cells[column] ?? '').padEnd(width)).join(' | ')} |`;
  return [line(header), line(widths.map((width) => '-'.repeat(width))), ...rows.map(line)].join(
    '\n',
  );
}

export interface Arrow {
  readonly from: string;
  readonly to: string;
  readonly label: string;
}

/** A state diagram (Mermaid); arrows between the same two states are one, with all labels. */
export function diagram(arrows: readonly Arrow[], start?: string): string {
  const labels = new Map<string, string[]>();
  for (const { from, to, label } of arrows) {
    const key = `${from} --> ${to}`;
    labels.set(key, [...(labels.get(key) ?? []), label]);
  }
  const lines = [...labels].map(([key, names]) => `  ${key}: ${[...new Set(names)].join(', ')}`);
  const first = start === undefined ? [] : [`  [*] --> ${start}`];
  return ['```mermaid', 'stateDiagram-v2', ...first, ...lines, '```'].join('\n');
}

/** `code`. */
export function code(text: string): string {
  return `\`${text}\``;
}

/** Blocks with an empty line between them. */
export function page(...blocks: readonly string[]): string {
  return `${blocks.join('\n\n')}\n`;
}
