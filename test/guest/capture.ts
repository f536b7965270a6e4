import { settled } from './machine-time.js';
import type { RunningCommand } from './command.js';

const QUIET_MS = 200;
const QUIET_ROUNDS = 50;
const COUNTS_TIMEOUT_MS = 5000;

/** A tcpdump at work. */
export class Capture {
  constructor(
    readonly file: string,
    private readonly tcpdump: RunningCommand,
  ) {}

  /** Ends the capture when nothing comes any more and tcpdump has written all that came. */
  async stop(): Promise<void> {
    let before = -1;
    for (let round = 0; round < QUIET_ROUNDS; round++) {
      const { captured, received } = await this.counts();
      if (captured === received && received === before) break;
      before = received;
      await settled(QUIET_MS);
    }
    const { stderr } = await this.tcpdump.stop('SIGTERM');
    if (!/\n0 packets dropped by kernel/.test(stderr))
      throw new Error(`packets lost: ${stderr.slice(-300)}`);
  }

  /** SIGUSR1 makes tcpdump print a line such as "7 packets captured, 9 packets received by ...". */
  private async counts(): Promise<{ captured: number; received: number }> {
    const seen = this.tcpdump.stderr.length;
    this.tcpdump.kill('SIGUSR1');
    const pattern =
      /(\d+) packets? captured\D+(\d+) packets? received by filter\D+\d+ packets? dropped/;
    const next = new RegExp(`[^]{${seen}}[^]*${pattern.source}`);
    await this.tcpdump.waitForOutput(next, COUNTS_TIMEOUT_MS);
    const [, captured, received] = pattern.exec(this.tcpdump.stderr.slice(seen)) ?? [];
    return { captured: Number(captured), received: Number(received) };
  }
}
