/** Progress for people: a bar on a terminal, a line a second elsewhere. */
import { Presets, SingleBar } from 'cli-progress';

const MIB = 2 ** 20;

const mib = (bytes: number): string => (bytes / MIB).toFixed(0);

export interface Progress {
  /** @param doneBytes of the whole, those of an earlier run included */
  update(doneBytes: number): void;
  stop(): void;
}

/** Throughput of this run, as text. */
export function rateText(bytes: number, seconds: number): string {
  return `${(bytes / MIB / Math.max(seconds, 1e-9)).toFixed(0)} MiB/s`;
}

/**
 * @param startBytes what an earlier run has moved
 * @param out where it is shown; a bar if it is a terminal
 */
export function startProgress(
  totalBytes: number,
  startBytes: number,
  out: NodeJS.WriteStream,
): Progress {
  return out.isTTY ? bar(totalBytes, startBytes, out) : lines(totalBytes, startBytes, out);
}

function bar(totalBytes: number, startBytes: number, out: NodeJS.WriteStream): Progress {
  const startedMs = performance.now();
  const single = new SingleBar(
    {
      stream: out,
      format: '{bar} {percentage} % | {done}/{size} MiB | {rate} | ETA {eta_formatted}',
      hideCursor: true,
      clearOnComplete: false,
    },
    Presets.shades_classic,
  );
  const payload = (doneBytes: number): object => ({
    done: mib(doneBytes),
    size: mib(totalBytes),
    rate: rateText(doneBytes - startBytes, (performance.now() - startedMs) / 1000),
  });
  single.start(totalBytes, startBytes, payload(startBytes));
  return {
    update: (doneBytes) => single.update(doneBytes, payload(doneBytes)),
    stop: () => single.stop(),
  };
}

function lines(totalBytes: number, startBytes: number, out: NodeJS.WriteStream): Progress {
  const startedMs = performance.now();
  let saidMs = startedMs;
  return {
    update: (doneBytes) => {
      const nowMs = performance.now();
      if (nowMs - saidMs < 1000) return;
      saidMs = nowMs;
      const seconds = (nowMs - startedMs) / 1000;
      const bytesPerSecond = (doneBytes - startBytes) / seconds;
      const eta = bytesPerSecond > 0 ? Math.ceil((totalBytes - doneBytes) / bytesPerSecond) : 0;
      const percent = totalBytes === 0 ? 100 : (100 * doneBytes) / totalBytes;
      out.write(
        `${percent.toFixed(0)} % | ${mib(doneBytes)}/${mib(totalBytes)} MiB` +
          ` | ${rateText(doneBytes - startBytes, seconds)} | ETA ${eta}s\n`,
      );
    },
    stop: () => undefined,
  };
}
