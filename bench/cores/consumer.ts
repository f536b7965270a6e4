/** What uses the messages of an end, and counts them. */
import { crc32 } from 'node:zlib';
import { StreamClock } from '../compare/stream-clock.js';
import type { Job, Result } from './job.js';

/** Room for what is in flight. */
export function memoryOf({ depth, messageBytes }: Job): SharedArrayBuffer {
  const memory = new SharedArrayBuffer(depth * messageBytes);
  new Uint8Array(memory).fill(1);
  return memory;
}

export class Consumer {
  over = false;
  private messages = 0;
  private readonly clock: StreamClock;
  private readonly cpuBefore = process.cpuUsage();

  constructor(
    private readonly job: Job,
    private readonly bytes: Uint8Array,
  ) {
    this.clock = new StreamClock(job.seconds);
  }

  /** Uses the next `count` messages, in their order. */
  take(count: number): void {
    const { messageBytes, depth, checksum, role } = this.job;
    for (let i = 0; i < count; i++) {
      const at = (this.messages % depth) * messageBytes;
      if (checksum) crc32(this.bytes.subarray(at, at + messageBytes));
      this.messages += 1;
    }
    if (role === 'client' && this.clock.isOver(this.messages)) this.over = true;
  }

  result(): Result {
    const count = this.clock.count(this.messages);
    const { user, system } = process.cpuUsage(this.cpuBefore);
    return { ...count, cpuSeconds: (user + system) / 1e6 };
  }
}
