/** A line for the case that runs the program. */
export function say(line: string): void {
  process.stdout.write(`${line}\n`);
}
