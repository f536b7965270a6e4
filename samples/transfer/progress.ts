/** Shows progress: a bar on a terminal; otherwise a line per second. */
import { Presets, SingleBar } from 'cli-progress';
import { partText, rateText } from './units.js';

const LINE_EVERY_MS = 1000;

export interface Progress {
  /** @param doneBytes of the whole file, including those of an earlier run */
  update(doneBytes: number): void;
  stop(): void;
}

/**
 * @param startBytes bytes of an earlier run
 * @param out the stream to print to; a bar if it is a terminal
 */
export function startProgress(
  totalBytes: number,
  startBytes: number,
  out: NodeJS.WriteStream,
): Progress {
  const figures = figuresSince(performance.now(), totalBytes, startBytes);
  return out.isTTY ? bar(totalBytes, startBytes, out, figures) : lines(out, figures);
}

type Figures = (doneBytes: number) => { percent: string; text: string };

function figuresSince(startedMs: number, totalBytes: number, startBytes: number): Figures {
  return (doneBytes) => {
    const seconds = (performance.now() - startedMs) / 1000;
    const moved = doneBytes - startBytes;
    const etaSeconds = moved > 0 ? Math.ceil(((totalBytes - doneBytes) * seconds) / moved) : 0;
    const eta = moved > 0 || doneBytes === totalBytes ? `${etaSeconds} s` : '?';
    const done = partText(doneBytes, totalBytes);
    const percent = totalBytes === 0 ? 100 : Math.floor((100 * doneBytes) / totalBytes);
    return { percent: `${percent} %`, text: `${done} | ${rateText(moved, seconds)} | ETA ${eta}` };
  };
}

function bar(
  totalBytes: number,
  startBytes: number,
  out: NodeJS.WriteStream,
  figures: Figures,
): Progress {
  const single = new SingleBar(
    {
      stream: out,
      format: '{bar} {percent} | {text}',
      barsize: 24,
      hideCursor: true,
      // We handle signals: the bar stops when the transfer has stopped.
      gracefulExit: false,
    },
    Presets.shades_classic,
  );
  // A bar of 0 bytes would stay empty: each bar shows at least one byte.
  const shown = (doneBytes: number): number => (totalBytes === 0 ? 1 : doneBytes);
  single.start(Math.max(totalBytes, 1), shown(startBytes), figures(startBytes));
  return {
    update: (doneBytes) => single.update(shown(doneBytes), figures(doneBytes)),
    stop: () => single.stop(),
  };
}

function lines(out: NodeJS.WriteStream, figures: Figures): Progress {
  let saidMs = performance.now();
  return {
    update: (doneBytes) => {
      const nowMs = performance.now();
      if (nowMs - saidMs < LINE_EVERY_MS) return;
      saidMs = nowMs;
      const { percent, text } = figures(doneBytes);
      out.write(`${percent} | ${text}\n`);
    },
    stop: () => undefined,
  };
}
