/** Counters for people: a line that changes on a terminal, a line every so often elsewhere. */
import { SingleBar } from 'cli-progress';

const TERMINAL_EVERY_MS = 500;

export interface Status {
  /** A sentence of its own, which stays. */
  say(sentence: string): void;
  /** The last line of counters. */
  stop(): void;
}

/**
 * @param text the counters now
 * @param everyMs between lines where `out` is no terminal; 0 for the last one only
 */
export function startStatus(text: () => string, everyMs: number, out: NodeJS.WriteStream): Status {
  return out.isTTY ? onTerminal(text, out) : inLines(text, everyMs, out);
}

function onTerminal(text: () => string, out: NodeJS.WriteStream): Status {
  const bar = new SingleBar({
    stream: out,
    format: '{text}',
    hideCursor: true,
    // Signals are ours.
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
