// The lines that the harness and the agent in a guest exchange: one JSON object a line, over a
// virtio-serial port (not over the network, which the cases break on purpose).

export type ToAgent =
  | {
      readonly op: 'spawn';
      readonly id: number;
      readonly command: string;
      readonly cwd: string;
      readonly env: Readonly<Record<string, string>>;
    }
  | { readonly op: 'kill'; readonly id: number; readonly signal: NodeJS.Signals };

export type FromAgent =
  | { readonly op: 'ready' }
  | { readonly op: 'stdout' | 'stderr'; readonly id: number; readonly text: string }
  | {
      readonly op: 'exit';
      readonly id: number;
      readonly code: number | null;
      readonly signal: string | null;
    };

/** Splits a byte stream into parsed lines. Both ends are ours: a bad line is a bug, and throws. */
export class LineParser<Message> {
  private rest = '';

  push(text: string, deliver: (message: Message) => void): void {
    const lines = (this.rest + text).split('\n');
    this.rest = lines.pop() ?? '';
    for (const line of lines) {
      if (line !== '') deliver(JSON.parse(line) as Message);
    }
  }
}
