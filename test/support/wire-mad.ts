/** A MAD module whose wire is the test: it keeps what is sent, and the test says what arrives. */
import {
  type ConfiguredPlugin,
  definePlugin,
  type Gid,
  type MadAgentOptions,
  type MadModule,
  type MadSend,
  type Scheduler,
  SCHEDULER,
  WcStatus,
} from '../../core/spi/index.js';
import { type CmMessage, emitCmMad, parseCmMad } from '../../plugins/cm/wire/message.js';

export class WireMad implements MadModule {
  readonly sent: CmMessage[] = [];
  /** Thrown by every send from now on: the device is gone. */
  failure: Error | undefined;
  private agent: MadAgentOptions | undefined;
  private scheduler: Scheduler | undefined;

  plugin(): ConfiguredPlugin<'mad'> {
    const meta = { name: 'wire', kind: 'mad', sdkVersion: '2.0', provides: ['mad'] } as const;
    const inject = { scheduler: SCHEDULER };
    return definePlugin({ ...meta, requires: [], inject }, ({ scheduler }) => {
      this.scheduler = scheduler;
      return this;
    })(undefined);
  }

  registerAgent(options: MadAgentOptions): ReturnType<MadModule['registerAgent']> {
    this.agent = options;
    return {
      hiTid: 1,
      send: (mad) => this.send(mad),
      cancel: () => undefined,
      modify: () => undefined,
      unregister: () => Promise.resolve(),
    };
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  /** A message of a peer's arrives. */
  deliver(message: CmMessage, gid: Gid): void {
    const ids = { transactionIdHi: 7, transactionIdLo: 7, attributeModifier: 0 };
    const data = emitCmMad({ ...ids, message });
    this.agent?.onReceive({ data, source: { gid, localGidIndex: 0, qpn: 1, qkey: 0 } });
  }

  private send({ data, context }: MadSend): { readonly context: unknown } {
    if (this.failure) throw this.failure;
    const mad = parseCmMad(data);
    if (!mad) throw new Error('not a CM message');
    this.sent.push(mad.message);
    const handle = { context };
    this.scheduler?.defer(() => this.agent?.onSend({ handle, status: WcStatus.SUCCESS }));
    return handle;
  }
}
