/** An XRC module over a fake device, with named consumers that keep what they are told. */
import { AsyncEventType, type XrcDomain, type XrcOpenMode } from '../../core/spi/index.js';
import { Xrc } from '../../plugins/xrc/index.js';
import { FakeXrcDevice, Lines, targetAttributes } from './fake-xrc-device.js';

export class XrcConsumerStub {
  /** `qpn:event` of each event, in order. */
  readonly events: string[] = [];
  domain!: XrcDomain;

  constructor(
    private readonly module: Xrc,
    readonly name: string,
  ) {}

  open(key: string | undefined = 'k', mode: XrcOpenMode = 'create'): XrcDomain {
    this.domain = this.module.openDomain(this, key, mode) as XrcDomain;
    return this.domain;
  }

  hear(qpn: number): (event: AsyncEventType) => void {
    return (event) => void this.events.push(`${qpn}:${event}`);
  }

  create(owner: 'consumer' | 'domain' = 'consumer'): number {
    let qpn = 0;
    const onEvent = (event: AsyncEventType): void => this.hear(qpn)(event);
    qpn = this.domain.createTarget({ attributes: targetAttributes(), owner, onEvent });
    return qpn;
  }

  register(qpn: number): void {
    this.domain.register(qpn, this.hear(qpn));
  }

  unregister(qpn: number): void {
    this.domain.unregister(qpn);
  }

  /** The end of the process, in 2010's words. */
  exit(): void {
    this.module.release(this);
  }
}

export class XrcWorld {
  readonly fake = new FakeXrcDevice();
  readonly log = new Lines();
  readonly module = new Xrc({ device: this.fake.device, logger: this.log.logger });

  consumer(name: string): XrcConsumerStub {
    return new XrcConsumerStub(this.module, name);
  }

  lives(qpn: number): boolean {
    return this.fake.find(qpn).destroyed === 0;
  }

  /** How often the device was told to destroy it. */
  destroyed(qpn: number): number {
    return this.fake.find(qpn).destroyed;
  }

  fail(qpn: number): void {
    this.fake.raise(qpn, AsyncEventType.QP_FATAL);
  }
}

export const FATAL = AsyncEventType.QP_FATAL;
