/** Progress of a copy: a bar on a terminal, and nothing elsewhere. */
import { Presets, SingleBar } from 'cli-progress';

export interface Progress {
  add(bytes: number): void;
  stop(): void;
}

const MEBI = 2 ** 20;

export function startProgress(what: string, totalBytes: number, out: NodeJS.WriteStream): Progress {
  if (!out.isTTY) return { add: () => undefined, stop: () => undefined };
  const bar = new SingleBar(
    {
      stream: out,
      format: `${what} {bar} {percentage} % | {value} of {total} MiB | ETA {eta_formatted}`,
      barsize: 24,
      hideCursor: true,
    },
    Presets.shades_classic,
  );
  let bytes = 0;
  bar.start(Math.ceil(totalBytes / MEBI), 0);
  return {
    add: (more) => {
      bytes += more;
      bar.update(Math.floor(bytes / MEBI));
    },
    stop: () => bar.stop(),
  };
}
