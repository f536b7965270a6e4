/** Prints counters: a line that changes on a terminal, otherwise a new line at each period. */
import { SingleBar } from 'cli-progress';

const TERMINAL_EVERY_MS = 500;

export interface Status {
  /** Prints a sentence on a line of its own. */
  say(sentence: string): void;
  /** Prints the last line of counters. */
  stop(): void;
}

/**
 * @param text returns the current counters
 * @param everyMs period of lines if `out` is no terminal; 0 to print only the last one
 */
export function startStatus(text: () => string, everyMs: number, out: NodeJS.WriteStream): Status {
  return out.isTTY ? onTerminal(text, out) : inLines(text, everyMs, out);
}

function onTerminal(text: () => string, out: NodeJS.WriteStream): Status {
  const bar = new SingleBar({
    stream: out,
    format: '{text}',
    hideCursor: true,
    // The forwarder handles signals itself.
    gracefulExit: false,
  });
  const show = (): void => bar.update(0, { text: text() });
  bar.start(1, 0, { text: text() });
  const timer = setInterval(show, TERMINAL_EVERY_MS).unref();
  return {
    say: (sentence) => {
      out.write(`\r\x1b[K${sentence}\n`);
      show();
    },
    stop: () => {
      clearInterval(timer);
      show();
      bar.stop();
    },
  };
}

function inLines(text: () => string, everyMs: number, out: NodeJS.WriteStream): Status {
  const say = (sentence: string): void => void out.write(`${sentence}\n`);
  const timer = everyMs > 0 ? setInterval(() => say(text()), everyMs).unref() : undefined;
  return {
    say,
    stop: () => {
      clearInterval(timer);
      say(text());
    },
  };
}
