/** The fake umad devices of test/native/fake-umad, and MAD modules over them. */
import { createRequire } from 'node:module';
import { join } from 'node:path';
import {
  emitMadHeader,
  type Gid,
  gidFromIp,
  GSI_QKEY,
  GSI_QPN,
  ipFromGid,
  type MadAddress,
  type MadAgent,
  type MadAgentOptions,
  type MadHeader,
  type MadSendResult,
  nameOf,
  type ReceivedMad,
  silentLogger,
  WcStatus,
} from '../../core/spi/index.js';
import { SystemRandom } from '../../providers/host/index.js';
import { Umad, type UmadOptions } from '../../providers/verbs/mad/mad.js';
import type { UmadNative } from '../../providers/verbs/addon/umad.js';
import { loadVerbsAddon, type VerbsAddon } from '../../providers/verbs/addon/native-addon.js';
import { VirtualWorld } from '../support/virtual-world.js';
import { patience } from '../support/patience.js';

/** The system calls; an ioctl by what it does. */
export type UmadCall = 'open' | 'register' | 'unregister' | 'read' | 'write' | 'close';

interface FakeUmad {
  addPort(path: string, gids: Uint8Array): void;
  /** The device goes. */
  removePort(path: string): void;
  /** The `nth` call from now on fails. */
  inject(call: UmadCall, nth: number, errno: number): void;
  /** How many have not come about. */
  pendingInjections(): number;
  clearInjections(): void;
  /** So many datagrams to come do not arrive. */
  lose(count: number): void;
  /** So many sends to come are never heard of again. */
  swallow(count: number): void;
  delayWrites(ms: number): void;
  advance(ms: number): void;
  openFiles(): number;
  /** Time passes by itself from now on. */
  runClock(): void;
  reset(): void;
}

const library = join(import.meta.dirname, '../../../build/native/fake-umad.node');
export const fakeUmad = createRequire(import.meta.url)(library) as FakeUmad;

export const addon = loadVerbsAddon() as VerbsAddon & UmadNative;
const problem = addon.load('umad', library);
if (problem !== undefined) throw new Error(problem);

let ports = 0;

/** A port with a MAD module of its own. Time for its timers is virtual. */
export class UmadNode {
  readonly path = `/fake/umad${ports++}`;
  readonly gids: Gid[];
  readonly world = new VirtualWorld();
  readonly mad: Umad;
  /** What handlers were called, in order: `receive`, `response <context>`, `<status> <context>`. */
  readonly log: string[] = [];
  readonly results: MadSendResult[] = [];
  readonly received: { mad: ReceivedMad; data: Uint8Array }[] = [];

  constructor(ips: readonly string[], options: UmadOptions = {}) {
    this.gids = ips.map(gidFromIp);
    // Another entry of the kernel's table comes first: indices differ.
    fakeUmad.addPort(this.path, Buffer.concat([gidFromIp('fe80::1'), ...this.gids]));
    this.mad = new Umad(
      {
        native: addon,
        path: () => this.path,
        device: { gids: this.gids },
        own: {
          hardwareGidIndex: (index) => index + 1,
          localGidIndex: (index) => index - 1,
        },
        timers: this.world,
        clock: this.world,
        random: new SystemRandom(),
        scheduler: { defer: (task) => void setImmediate(task), mayStart: () => true },
        logger: silentLogger,
      },
      options,
    );
  }

  address(index = 0): MadAddress {
    const gid = this.gids[index] ?? new Uint8Array(16);
    return { gid, localGidIndex: index, qpn: GSI_QPN, qkey: GSI_QKEY };
  }

  agent(overrides: Partial<MadAgentOptions> = {}): MadAgent {
    return this.mad.registerAgent({
      managementClass: VENDOR,
      classVersion: 1,
      methods: [],
      onReceive: (mad) => {
        this.received.push({ mad, data: mad.data.slice() });
        const { request, source } = mad;
        const from = ipFromGid(source.gid);
        this.log.push(request ? `response ${String(request.context)}` : `receive ${from}`);
      },
      onSend: (result) => {
        this.results.push(result);
        this.log.push(`${nameOf(WcStatus, result.status)} ${String(result.handle.context)}`);
      },
      ...overrides,
    });
  }

  /** Answers each Get with its own bytes, or with `data`. */
  answerer(overrides: Partial<MadAgentOptions> = {}, data?: Uint8Array): MadAgent {
    const agent: MadAgent = this.agent({
      methods: [GET],
      onReceive: (mad) => {
        const answer = data?.slice() ?? mad.data.slice();
        if (data) answer.set(mad.data.subarray(0, 24));
        answer[METHOD_AT] = GET | RESPONSE;
        agent.send({ destination: mad.source, data: answer, timeoutUs: 0, retries: 1 });
      },
      ...overrides,
    });
    return agent;
  }
}

/** Vendor range 1: neither OUI nor RMPP. */
export const VENDOR = 0x0a;
export const GET = 1;
const RESPONSE = 0x80;
const METHOD_AT = 3;

export function madOf(overrides: Partial<MadHeader>, lengthBytes = 256): Uint8Array {
  const data = new Uint8Array(lengthBytes);
  emitMadHeader(
    {
      baseVersion: 1,
      managementClass: VENDOR,
      classVersion: 1,
      method: GET,
      status: 0,
      classSpecific: 0,
      transactionIdHi: 0,
      transactionIdLo: nextTransaction++,
      attributeId: 0x20,
      attributeModifier: 0,
      ...overrides,
    },
    data,
  );
  return data;
}

let nextTransaction = 1;

/** Turns the event loop until it is so. */
export async function until(what: string, isSo: () => boolean): Promise<void> {
  const deadline = Date.now() + patience(30_000);
  while (!isSo()) {
    if (Date.now() > deadline) throw new Error(`never so: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
}
