/** Plays a scenario from its settings: the same settings give the same recording, anywhere. */
import { Fabric, type TappedPacket } from '../../../providers/mock/index.js';
import { type Arrival, emptyRecording, type PacketRow, type Recording } from './recording.js';
import type { Scenario, Settings } from './scenario.js';
import { ADDRESSES, NODES, Stage } from './stage.js';

/** Virtual time that a scenario may take: longer than any retry of a message of the CM. */
const MOST_US = 120_000_000;
const MOST_PACKETS = 3000;
const REORDER_DELAY_US = 60;
const LAST_DELAYS = 3;

export async function play(scenario: Scenario, settings: Settings): Promise<Recording> {
  const recording = emptyRecording(scenario.title, NODES);
  const { seed, loss, delay, reorder } = settings;
  const fabric = new Fabric({
    seed,
    link: {
      latencyMinUs: delay * 0.8,
      latencyMeanUs: delay,
      lossPercent: loss,
      reorderPercent: reorder,
      reorderDelayUs: REORDER_DELAY_US + delay,
    },
  });
  const recorder = new PacketRecorder(fabric, recording);
  const stage = new Stage(fabric, recording);
  schedule(fabric, settings);
  let hasEnded = false;
  const ending = scenario
    .play(stage)
    .catch((error: unknown) => {
      recording.problem ||= error instanceof Error ? error.message : String(error);
    })
    .finally(() => (hasEnded = true));
  const until = (): boolean => {
    stage.sample();
    return hasEnded || recording.packets.length > MOST_PACKETS;
  };
  try {
    await fabric.run({ until, withinUs: MOST_US });
    // The last packets arrive.
    await fabric.run({ forUs: LAST_DELAYS * delay });
  } catch {
    recording.problem ||= 'The scenario waits for something that does not happen any more.';
  }
  if (!hasEnded) recording.problem ||= `More than ${MOST_PACKETS} packets.`;
  recording.endUs = fabric.clock.now();
  recorder.stop();
  stage.stop();
  await close(stage, fabric);
  await Promise.race([ending, Promise.resolve()]);
  numberFromOne(recording);
  return recording;
}

/** Faults that happen at a time. */
function schedule(fabric: Fabric, { cutAt, cutFor, killAt }: Settings): void {
  const { clock } = fabric;
  if (cutAt > 0) {
    clock.at(cutAt, () => fabric.partition([ADDRESSES.client], [ADDRESSES.server]));
    clock.at(cutAt + cutFor, () => fabric.heal());
  }
  if (killAt > 0) clock.at(killAt, () => fabric.node(ADDRESSES.server)?.kill());
}

async function close(stage: Stage, fabric: Fabric): Promise<void> {
  let isClosed = false;
  const closing = Promise.allSettled(stage.adapters.map((ia) => ia.close('abrupt'))).then(
    () => (isClosed = true),
  );
  await fabric.run({ until: () => isClosed }).catch(() => undefined);
  await Promise.race([closing, Promise.resolve()]);
}

class PacketRecorder {
  /** Rows of packets on the wire, by their buffers, which the network uses again. */
  private readonly onWire = new Map<TappedPacket, PacketRow>();
  private readonly nodes = new Map(NODES.map((name, i) => [ADDRESSES[name], i]));

  constructor(
    private readonly fabric: Fabric,
    private readonly recording: Recording,
  ) {
    fabric.tap = (event, packet, timeUs) => {
      if (event === 'sent') this.sent(packet, timeUs);
      else this.delivered(packet, timeUs);
    };
    fabric.lossTap = (packet, reason) => {
      const row = this.onWire.get(packet);
      if (row) row.fate = reason === 'overflowed' ? 'lost' : reason;
      this.onWire.delete(packet);
    };
  }

  stop(): void {
    this.fabric.tap = this.fabric.lossTap = undefined;
  }

  private sent(packet: TappedPacket, timeUs: number): void {
    const { buffer, length, flow } = packet;
    const row: PacketRow = {
      from: this.nodes.get(flow.from) ?? 0,
      to: this.nodes.get(flow.to) ?? 0,
      // A packet leaves behind those that wait for the same wire.
      sentUs: timeUs + this.fabric.link(flow.from, flow.to).backlogUs(timeUs),
      bytes: buffer.slice(0, length),
      arrivals: [],
      fate: 'unknown',
    };
    this.recording.packets.push(row);
    this.onWire.set(packet, row);
  }

  private delivered(packet: TappedPacket, timeUs: number): void {
    const bytes = packet.buffer.subarray(0, packet.length);
    const row = this.onWire.get(packet) ?? this.original(bytes);
    this.onWire.delete(packet);
    if (!row) return;
    const arrival: Arrival = { timeUs, isCorrupt: !isEqual(row.bytes, bytes) };
    row.arrivals.push(arrival);
    row.fate = 'delivered';
  }

  /** The packet that the network has copied. */
  private original(bytes: Uint8Array): PacketRow | undefined {
    return this.recording.packets.findLast((row) => isEqual(row.bytes, bytes));
  }
}

function isEqual(one: Uint8Array, other: Uint8Array): boolean {
  return one.length === other.length && one.every((byte, i) => byte === other[i]);
}

const KINDS = 'ia|pz|ep|evd|lmr|rmr|psp|csp|rsp|cr|srq|cno|sp|object|domain|initiator|agent';
const HANDLE = new RegExp(`\\b((?:${KINDS})[ =])(\\d+)\\b`, 'g');

/** Handles count up in a process; in a recording they are numbered as they are first named. */
function numberFromOne(recording: Recording): void {
  const numbers = new Map<string, number>();
  const renumbered = (text: string): string =>
    text.replace(HANDLE, (_, name: string, id: string) => {
      const number = numbers.get(id) ?? numbers.size + 1;
      numbers.set(id, number);
      return `${name}${number}`;
    });
  for (const line of recording.lines) line.text = renumbered(line.text);
  for (const row of recording.states) if (row.machine === 'EP') row.name = renumbered(row.name);
}
