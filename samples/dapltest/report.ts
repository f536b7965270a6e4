/** The report at the end of a test, in the C program's words. */
import type { PerformanceCommand, TransactionCommand } from './messages.js';
import { lengthOf } from './operations.js';

/** Bytes by operation; reads and writes of both sides. */
export interface Traffic {
  sent: number;
  received: number;
  read: number;
  written: number;
}

export type Print = (line: string) => void;

const MB = 1e6;
/** The performance test's "MB". */
const MIB = 2 ** 20;

export function reportTransaction(
  print: Print,
  { threads, endpointsPerThread, operations, iterations }: TransactionCommand,
  total: Traffic,
  seconds: number,
): void {
  const requests = threads * endpointsPerThread * operations.length * iterations;
  const line = (label: string, bytes: number): void => {
    const rate = (bytes / MB / seconds).toFixed(2);
    print(`${label.padEnd(16)} : ${(bytes / MB).toFixed(2)} MB - ${rate} MB/Sec`);
  };
  print(`----- Stats ---- : ${threads} threads, ${endpointsPerThread} EPs`);
  print(`Total WQE        : ${(requests / seconds).toFixed(2)} WQE/Sec`);
  print(`Total Time       : ${seconds.toFixed(2)} sec`);
  line('Total Send', total.sent);
  line('Total Recv', total.received);
  line('Total RDMA Read', total.read);
  line('Total RDMA Write', total.written);
}

export function sumOf(parts: readonly Traffic[]): Traffic {
  const sum: Traffic = { sent: 0, received: 0, read: 0, written: 0 };
  for (const { sent, received, read, written } of parts) {
    sum.sent += sent;
    sum.received += received;
    sum.read += read;
    sum.written += written;
  }
  return sum;
}

/** Statistics of latencies in microseconds. */
export class LatencyStatistics {
  private count = 0;
  private sumUs = 0;
  private minUs = Infinity;
  private maxUs = 0;

  record(us: number): void {
    this.count++;
    this.sumUs += us;
    this.minUs = Math.min(this.minUs, us);
    this.maxUs = Math.max(this.maxUs, us);
  }

  report(print: Print): void {
    print('Latency');
    print(`    Arithmetic mean      : ${(this.sumUs / this.count).toFixed(2)} us`);
    print(`    maximum              : ${this.maxUs.toFixed(2)} us`);
    print(`    minimum              : ${this.minUs.toFixed(2)} us`);
  }
}

export function reportPerformance(
  print: Print,
  command: PerformanceCommand,
  seconds: number,
  latency: LatencyStatistics,
): void {
  const { mode, transfer, iterations, segmentBytes, segments, pipeline } = command;
  const megabytes = (lengthOf(command) * iterations) / MIB;
  const figures = {
    Mode: mode,
    'Operation Type': transfer === 'RR' ? 'RDMA_READ' : 'RDMA_WRITE',
    'Number of Operations': iterations,
    'Segment Size': segmentBytes,
    'Number of Segments': segments,
    'Pipeline Length': pipeline,
    'Total Time': `${seconds.toFixed(2)} sec`,
    'Total Data Exchanged': `${megabytes.toFixed(2)} MB`,
    'Operation Throughput': `${(iterations / seconds).toFixed(2)} ops/sec`,
    Bandwidth: `${(megabytes / seconds).toFixed(2)} MB/sec`,
  };
  print('------------------------- Statistics -------------------------');
  for (const [name, value] of Object.entries(figures)) print(`    ${name.padEnd(20)} : ${value}`);
  latency.report(print);
}
