/** The stage of a scenario: two nodes on a simulated network, and the recorder of their states. */
import {
  DatDtoStatus,
  type DatEvent,
  DatEventNumber,
  type Ep,
  type Evd,
  EvdFlags,
  type Ia,
  type Lmr,
  type LmrSegment,
  type LogMethods,
  MemPrivileges,
  openIa,
  type Pz,
  type RemoteAddress,
} from '../../../core/index.js';
import { observe } from '../../../core/spi/decorators/index.js';
import {
  type ConfiguredProvider,
  nameOf,
  QpState,
  WcStatus,
  WrOpcode,
} from '../../../core/spi/index.js';
import { type Fabric, mock } from '../../../providers/mock/index.js';
import { cm } from '../../cm/index.js';
import { emptyRecording, type LineRow, type Recording, type RequestRow } from './recording.js';

export const NODES = ['client', 'server'] as const;
export type NodeName = (typeof NODES)[number];
export const ADDRESSES: Readonly<Record<NodeName, string>> = {
  client: '10.0.0.1',
  server: '10.0.0.2',
};
const GSI_QPN = 1;
const CONN_QUAL = 7000;
const QUEUE_LENGTH = 256;
const MEMORY_BYTES = 64 * 1024;

/** One end of a connection, with one queue for all of its events. */
export interface Side {
  readonly ia: Ia;
  readonly pz: Pz;
  readonly ep: Ep;
  readonly evd: Evd;
  readonly memory: Lmr;
  /** The next event of the queue. */
  next(): Promise<DatEvent>;
}

export interface Pair {
  readonly client: Side;
  readonly server: Side;
}

interface WatchedQueue {
  readonly node: number;
  readonly name: string;
  readonly evd: Evd;
  last: string;
}

export class Stage {
  /** Adapters that were opened: closed when the scenario has ended. */
  readonly adapters: Ia[] = [];
  private readonly devices = new Map<NodeName, ReturnType<Stage['device']>>();
  private readonly queues: WatchedQueue[] = [];

  constructor(
    readonly fabric: Fabric,
    private recording: Recording,
  ) {}

  /** Opens an adapter of a node; several of one node are several applications. */
  async open(node: NodeName): Promise<Ia> {
    const device = this.devices.get(node) ?? this.device(node);
    this.devices.set(node, device);
    const { provider, modules, logger } = device;
    const ia = await openIa(provider, { modules, logger });
    this.adapters.push(ia);
    return ia;
  }

  /** Adapter, memory, queue and endpoint of one side, not connected yet. */
  async side(node: NodeName, flags: number = EvdFlags.CONNECTION | EvdFlags.DTO): Promise<Side> {
    const ia = await this.open(node);
    const pz = ia.createPz();
    const evd = ia.createEvd({ qlen: QUEUE_LENGTH, streams: flags });
    this.watch(node, `${node}'s events`, evd);
    const ep = ia.createEndpoint({ pz, connectEvd: evd, recvEvd: evd, requestEvd: evd });
    const memory = ia.allocate(MEMORY_BYTES, { pz, privileges: MemPrivileges.ALL });
    return { ia, pz, ep, evd, memory, next: async () => (await evd.wait()).event };
  }

  /** Lets the server accept on its endpoint, and the client connect. Nothing is awaited. */
  connect({ client, server }: Pair, onAccepted: () => void = () => undefined): void {
    server.ia.createPsp({ connQual: CONN_QUAL }).requests$.subscribe(({ cr }) => {
      cr.accept(server.ep);
      onAccepted();
    });
    client.ep.connect({ address: ADDRESSES.server, connQual: CONN_QUAL });
  }

  /** Both sides, connected. */
  async connected(): Promise<Pair> {
    const pair = { client: await this.side('client'), server: await this.side('server') };
    this.connect(pair);
    await Promise.all([pair.client.next(), pair.server.next()]);
    return pair;
  }

  /** Shows the length and the policy of a queue. */
  watch(node: NodeName, name: string, evd: Evd): void {
    this.queues.push({ node: NODES.indexOf(node), name, evd, last: '' });
  }

  /** Lets virtual time pass. */
  pause(forUs: number): Promise<void> {
    const { clock } = this.fabric;
    return new Promise((resolve) => void clock.at(clock.now() + forUs, resolve));
  }

  /** Writes a remark beside the packets. */
  note(node: NodeName, text: string, kind: LineRow['kind'] = 'note'): void {
    this.line(NODES.indexOf(node), kind, text);
  }

  /** Says what must be true now. */
  claim(text: string, holds: boolean): void {
    this.recording.claims.push({ timeUs: this.now(), text, holds });
  }

  /** @internal what happens from now on is not recorded */
  stop(): void {
    this.recording = emptyRecording('', NODES);
  }

  /** @internal after each step of time */
  sample(): void {
    for (const queue of this.queues) {
      if (queue.evd.isFreed) continue;
      const { pending, policy, upcallsInProgress } = queue.evd.query();
      const last = `${pending} ${policy} ${upcallsInProgress}`;
      if (last === queue.last) continue;
      queue.last = last;
      const { node, name } = queue;
      this.recording.queues.push({
        timeUs: this.now(),
        node,
        name,
        pending,
        policy,
        upcallsInProgress,
      });
    }
  }

  private now(): number {
    return this.fabric.clock.now();
  }

  private line(node: number, kind: LineRow['kind'], text: string): void {
    this.recording.lines.push({ timeUs: this.now(), node, kind, text });
  }

  private device(name: NodeName): {
    readonly provider: ConfiguredProvider;
    readonly modules: { readonly cm: ReturnType<typeof cm> };
    readonly logger: LogMethods;
  } {
    const node = NODES.indexOf(name);
    const onState = this.cmObserver(node);
    const log = (text: string): void => this.line(node, 'log', text);
    return {
      provider: this.observed(mock({ fabric: this.fabric, address: ADDRESSES[name] }), node),
      modules: { cm: cm({ onState }) },
      logger: {
        debug: (text: string) => this.traced(node, text),
        info: log,
        warn: log,
        error: log,
        isDebugEnabled: () => true,
      },
    };
  }

  /** A line of the trace: a state of an endpoint, an event that was taken, or a call. */
  private traced(node: number, text: string): void {
    const change = /^ep (\d+): (\w+) -> (\w+)$/.exec(text);
    if (change) {
      const [, id = '', from = '', to = ''] = change;
      const row = { timeUs: this.now(), node, machine: 'EP', name: `ep ${id}`, from, to } as const;
      this.recording.states.push({ ...row, input: '', role: '' });
    } else if (text.startsWith('event(')) this.line(node, 'event', text);
    else if (/^[a-z][\w.]+\(/.test(text)) this.line(node, 'call', text);
    else this.line(node, 'log', text);
  }

  private cmObserver(node: number): NonNullable<NonNullable<Parameters<typeof cm>[0]>['onState']> {
    const ids: number[] = [];
    return ({ localCommId, role, input, from, to }) => {
      if (!ids.includes(localCommId)) ids.push(localCommId);
      const name = `connection ${ids.indexOf(localCommId) + 1}`;
      const row = { timeUs: this.now(), node, machine: 'CM', name, from, to, input, role } as const;
      this.recording.states.push(row);
    };
  }

  private observed(provider: ConfiguredProvider, node: number): ConfiguredProvider {
    const inFlight = new Map<string, RequestRow>();
    const states = new Map<number, string>();
    return observe(provider, {
      changed: (qpn, state) => {
        const to = nameOf(QpState, state);
        const from = states.get(qpn) ?? 'RESET';
        states.set(qpn, to);
        if (qpn === GSI_QPN) return;
        const name = `qp ${qpn}`;
        const row = { timeUs: this.now(), node, machine: 'QP', name, from, to } as const;
        this.recording.states.push({ ...row, input: '', role: '' });
      },
      posted: ({ kind, qpn, index, opcode, lengthBytes, timeUs }) => {
        if (kind !== 'send' || qpn === GSI_QPN) return;
        const row: RequestRow = {
          node,
          qpn,
          opcode: nameOf(WrOpcode, opcode ?? 0),
          bytes: lengthBytes,
          postedUs: timeUs,
          doneUs: Infinity,
          status: '',
        };
        this.recording.requests.push(row);
        inFlight.set(`${qpn} ${index}`, row);
      },
      completed: ({ kind, qpn, index, status, timeUs }) => {
        const row = kind === 'send' ? inFlight.get(`${qpn} ${index}`) : undefined;
        if (!row) return;
        row.doneUs = timeUs;
        row.status = nameOf(WcStatus, status);
        inFlight.delete(`${qpn} ${index}`);
      },
    });
  }
}

/** The context and address by which a peer reaches memory. */
export function grantOf({ memory }: Side): RemoteAddress {
  return { address: memory.address, rmrContext: memory.rmrContext ?? 0 };
}

/** Writes a text into memory; returns the segment that holds it. */
export function textIn({ memory }: Pick<Side, 'memory'>, text: string): LmrSegment {
  const bytes = new TextEncoder().encode(text);
  memory.bytes.set(bytes);
  return memory.segment(0, bytes.length);
}

/** The event in a word or two: `ESTABLISHED`, `SUCCESS`. */
export function wordOf(event: DatEvent): string {
  return event.type === 'dto'
    ? nameOf(DatDtoStatus, event.status)
    : nameOf(DatEventNumber, event.number);
}
