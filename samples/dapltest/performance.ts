/**
 * The performance test: one connection, RDMA reads or writes by the client; first with a full
 * pipeline (bandwidth), then one at a time (latency). The server only provides its memory.
 */
import { type Ia, MemPrivileges, RemoteSegment } from 'dapl';

import { allocateMessage, type Message } from '../message.js';
import { OperationBuffer } from './buffers.js';
import {
  accept,
  completed,
  connect,
  createEndpoint,
  type Endpoint,
  ended,
  leave,
  received,
} from '../endpoint.js';
import type { Peer } from './lane.js';
import { MEMORY_INFO_BYTES, readMemoryInfo, writeMemoryInfo } from './memory-info.js';
import type { PerformanceCommand } from './messages.js';
import { LatencyStatistics, type Print, reportPerformance } from './report.js';
import { Service } from './service.js';

const { LOCAL_READ, LOCAL_WRITE, REMOTE_READ, REMOTE_WRITE } = MemPrivileges;
const LOCAL = LOCAL_READ | LOCAL_WRITE;

/** One connection, and the message that each side sends on it. */
class PerformanceLane {
  readonly endpoint: Endpoint;
  readonly out: Message;
  readonly in: Message;
  readonly buffer: OperationBuffer;

  constructor(ia: Ia, command: PerformanceCommand, requests: number, lends: boolean) {
    const pz = ia.createPz();
    const { segments, mode } = command;
    this.endpoint = createEndpoint(ia, pz, {
      receives: 1,
      requests,
      segments: lends ? 1 : segments,
      polls: mode === 'polling' && !lends,
    });
    this.out = allocateMessage(ia, pz, MEMORY_INFO_BYTES);
    this.in = allocateMessage(ia, pz, MEMORY_INFO_BYTES);
    this.buffer = lends
      ? new OperationBuffer(ia, pz, command, LOCAL | REMOTE_READ | REMOTE_WRITE, 'run')
      : new OperationBuffer(ia, pz, command, LOCAL, 'segments');
    this.endpoint.ep.postRecv(this.in.segment, 0);
  }

  receive(): Promise<void> {
    return received(this.endpoint, 0, MEMORY_INFO_BYTES, "the peer's synchronization");
  }
}

/** The server's side; the port is served once it is created. */
export class PerformanceServer {
  private readonly lane: PerformanceLane;
  private readonly service: Service;

  constructor(
    ia: Ia,
    port: number,
    command: PerformanceCommand,
    private readonly print: Print,
  ) {
    this.lane = new PerformanceLane(ia, command, 1, true);
    this.service = new Service(ia, this.lane.endpoint, port);
  }

  async run({ littleEndian }: Peer): Promise<void> {
    const { endpoint, buffer, out } = this.lane;
    await accept(endpoint, await this.service.request());
    const { address, rmrContext = 0 } = buffer.lmr;
    writeMemoryInfo(out.bytes, { address, rmrContext }, littleEndian);
    endpoint.ep.postSend(out.segment);
    await completed(endpoint, 0, MEMORY_INFO_BYTES, 'memory information');
    await this.lane.receive();
    await ended(endpoint);
    this.print('Server: Finished performance test.');
  }
}

export async function performanceClient(
  ia: Ia,
  server: Peer & { readonly address: string; readonly firstPort: number },
  command: PerformanceCommand,
  print: Print,
): Promise<void> {
  const pipeline = pipelineOn(ia, command);
  const lane = new PerformanceLane(ia, command, pipeline, false);
  await connect(lane.endpoint, server.address, server.firstPort);
  await lane.receive();
  const remote = new RemoteSegment(readMemoryInfo(lane.in.bytes, server.littleEndian));
  const seconds = await measureBandwidth(lane, remote, command, pipeline);
  const latency = await measureLatency(lane, remote, command);
  await leave(lane.endpoint, lane.out.segment);
  reportPerformance(print, { ...command, pipeline }, seconds, latency);
}

/** Requests in flight: as requested, at most as many as the device allows. */
function pipelineOn(ia: Ia, { iterations, pipeline, transfer }: PerformanceCommand): number {
  const { maxDtoPerEp, maxEvdQlen, maxRdmaReadPerEpOut } = ia.query().ia;
  const most = Math.min(iterations, pipeline, maxDtoPerEp - 1, maxEvdQlen);
  return transfer === 'RR' ? Math.min(most, maxRdmaReadPerEpOut) : most;
}

/** @returns seconds that all iterations took */
async function measureBandwidth(
  lane: PerformanceLane,
  remote: RemoteSegment,
  command: PerformanceCommand,
  pipeline: number,
): Promise<number> {
  const start = performance.now();
  let posted = 0;
  lane.endpoint.ep.burst(() => {
    for (; posted < pipeline; posted++) post(lane, remote, command);
  });
  for (let done = 0; done < command.iterations; done++) {
    await complete(lane, command);
    if (posted === command.iterations) continue;
    post(lane, remote, command);
    posted++;
  }
  return (performance.now() - start) / 1000;
}

async function measureLatency(
  lane: PerformanceLane,
  remote: RemoteSegment,
  command: PerformanceCommand,
): Promise<LatencyStatistics> {
  const latency = new LatencyStatistics();
  for (let done = 0; done < command.iterations; done++) {
    const start = performance.now();
    post(lane, remote, command);
    await complete(lane, command);
    latency.record((performance.now() - start) * 1000);
  }
  return latency;
}

function post(
  { endpoint, buffer }: PerformanceLane,
  remote: RemoteSegment,
  { transfer }: PerformanceCommand,
): void {
  if (transfer === 'RR') endpoint.ep.postRdmaRead(buffer.segments, 0, remote);
  else endpoint.ep.postRdmaWrite(buffer.segments, 0, remote);
}

function complete(
  { endpoint, buffer }: PerformanceLane,
  command: PerformanceCommand,
): Promise<void> {
  return completed(endpoint, 0, buffer.lengthBytes, command.transfer);
}
