/**
 * A notice board of the receivers: the file that names their domain, one line for each notice. The
 * content of the file does not matter to the domain.
 */
import { appendFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

const LOOK_MS = 10;

export type Line =
  readonly ['queue', index: number, srqn: number] | readonly ['target', qpn: number];

export class Board {
  constructor(readonly file: string) {
    if (!existsSync(file)) writeFileSync(file, '', { flag: 'a' });
  }

  write(line: Line): void {
    appendFileSync(this.file, `${line.join(' ')}\n`);
  }

  /** Numbers of the receivers' queues, once all are known. */
  async queues(count: number): Promise<number[]> {
    for (;;) {
      const srqns: number[] = [];
      for (const line of this.lines()) if (line[0] === 'queue') srqns[line[1]] = line[2];
      if (Object.keys(srqns).length === count) return srqns;
      await sleep(LOOK_MS);
    }
  }

  /** Numbers of the targets that are known so far. */
  targets(): number[] {
    return this.lines().flatMap((line) => (line[0] === 'target' ? [line[1]] : []));
  }

  /** @throws Error if the file belongs to another run */
  mustBeFresh(index: number): void {
    const isTaken = this.lines().some((line) => line[0] === 'queue' && line[1] === index);
    if (isTaken) throw new Error(`${this.file} has a receiver ${index} already: take a new file`);
  }

  /** Complete lines of the file: each line is written at once. */
  private lines(): Line[] {
    const text = readFileSync(this.file, 'utf8');
    const whole = text
      .slice(0, text.lastIndexOf('\n') + 1)
      .split('\n')
      .slice(0, -1);
    return whole.map((line) => {
      const [kind, ...numbers] = line.split(' ');
      return [kind, ...numbers.map(Number)] as unknown as Line;
    });
  }
}
