/**
 * An agent: a client's registration, its list of sends, and the references that unregistering waits
 * for (the openib discussion of 4 October 2004).
 */
import { MAD_BYTES, SpiError } from '../../core/spi/index.js';
import type {
  Logger,
  MadAgent,
  MadAgentOptions,
  MadSend as MadSendOptions,
  MadSendHandle,
  ReceivedMad,
  WcStatus,
} from '../../core/spi/index.js';
import { MadSend } from './mad-send.js';
import type { MadSendOwner, MadSendServices } from './mad-send.js';
import { responseKey } from './response-key.js';
import { parseMadHeader } from './wire/mad-header.js';

/** Sends that one agent may have outstanding. */
const MAX_SENDS = 65_536;

export class Agent implements MadAgent, MadSendOwner {
  private readonly sends = new Set<MadSend>();
  private readonly asking = new Map<string, MadSend>();
  private references = 0;
  private received: ReceivedMad | undefined;
  private resolveEnded: () => void = () => undefined;
  /** Resolves when unregistering is over. */
  readonly ended = new Promise<void>((resolve) => (this.resolveEnded = resolve));
  unregistering = false;

  constructor(
    readonly hiTid: number,
    readonly options: MadAgentOptions,
    private readonly services: MadSendServices,
    private readonly logger: Logger,
    private readonly onUnregister: (agent: Agent) => void,
  ) {}

  send(options: MadSendOptions): MadSendHandle {
    this.checkMaySend();
    const key = this.checkSend(options);
    const { port } = this.services;
    const { gid, localGidIndex } = options.destination;
    const address = port.addresses.acquire(gid, localGidIndex);
    const send = new MadSend(this.services, this, address, options, key);
    this.sends.add(send);
    if (key !== undefined) this.asking.set(key, send);
    send.start();
    return send;
  }

  cancel(handle: MadSendHandle): void {
    this.own(handle)?.cancel();
  }

  modify(handle: MadSendHandle, timeoutUs: number): void {
    if (!(timeoutUs > 0 && timeoutUs < Infinity)) {
      throw new SpiError('EINVAL', `timeout ${timeoutUs} us: must be above 0 and finite`);
    }
    this.own(handle)?.modify(timeoutUs);
  }

  unregister(): Promise<void> {
    if (this.unregistering) return this.ended;
    this.unregistering = true;
    this.onUnregister(this);
    this.retain();
    for (const send of [...this.sends]) send.cancel();
    this.release();
    return this.ended;
  }

  /** The port is gone: every send comes back flushed. */
  tear(): void {
    for (const send of [...this.sends]) send.tear();
  }

  /** A request for this agent. */
  receive(received: ReceivedMad): void {
    this.retain();
    this.guard('receive', () => this.options.onReceive(received));
    this.release();
  }

  /** A response: false if no send of ours waits for it. */
  respond(received: ReceivedMad, key: string): boolean {
    const send = this.asking.get(key);
    if (!send?.awaitsResponse) return false;
    this.received = received;
    send.respond();
    this.received = undefined;
    return true;
  }

  retain(): void {
    this.references++;
  }

  release(): void {
    this.references--;
    if (this.references === 0 && this.unregistering) this.resolveEnded();
  }

  deliver(send: MadSend): void {
    const { received } = this;
    if (!received) return;
    this.forget(send);
    this.guard('receive', () => this.options.onReceive({ ...received, request: send }));
  }

  report(send: MadSend, status: WcStatus): void {
    this.forget(send);
    this.sends.delete(send);
    this.services.port.addresses.release(send.address);
    this.guard('send', () => this.options.onSend({ handle: send, status }));
  }

  /** Its transaction id may be used again. */
  private forget(send: MadSend): void {
    if (send.key !== undefined && this.asking.get(send.key) === send) this.asking.delete(send.key);
  }

  private own(handle: MadSendHandle): MadSend | undefined {
    if (handle instanceof MadSend && (handle.isDone || this.sends.has(handle))) {
      return handle.isDone ? undefined : handle;
    }
    throw new SpiError('EINVAL', 'that send is not of this agent');
  }

  private checkMaySend(): void {
    if (this.unregistering) throw new SpiError('EINVAL', 'the agent has been unregistered');
    if (!this.services.port.isOpen) throw new SpiError('ENODEV', 'QP1 of the device is gone');
    if (this.sends.size >= MAX_SENDS) {
      throw new SpiError('ENOMEM', `${this.sends.size} sends outstanding: the limit of an agent`);
    }
  }

  /** Returns what the response must match, if one is expected. */
  private checkSend({ data, timeoutUs, retries, destination }: MadSendOptions): string | undefined {
    const { invalid } = Agent;
    if (data.length !== MAD_BYTES)
      throw invalid(`MAD of ${data.length} bytes: must be ${MAD_BYTES}`);
    if (!(timeoutUs >= 0 && timeoutUs < Infinity)) {
      throw invalid(`timeout ${timeoutUs} us: 0 (no response expected) or more, finite`);
    }
    if (!Number.isInteger(retries) || retries < 0) throw invalid(`retries ${retries}: 0 or more`);
    if (timeoutUs === 0) return undefined;
    const header = parseMadHeader(data);
    if (header?.transactionIdHi !== this.hiTid) {
      throw invalid(`a request of this agent has ${this.hiTid} in its transaction id's upper half`);
    }
    const key = responseKey(header, destination.gid);
    if (this.asking.has(key)) throw invalid('a request with this transaction id is outstanding');
    return key;
  }

  private static invalid(this: void, message: string): SpiError {
    return new SpiError('EINVAL', message);
  }

  private guard(handler: string, call: () => void): void {
    try {
      call();
    } catch (error) {
      this.logger.error(`the ${handler} handler of a MAD agent threw`, { error });
    }
  }
}
