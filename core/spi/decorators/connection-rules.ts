/** Which events of a connection may follow which. */
import type {
  CmAcceptOptions,
  CmConnection,
  CmConnectOptions,
  CmEvent,
  CmModule,
  CmRequest,
} from '../modules/cm.js';
import { over, type Over } from './over.js';
import type { Report } from './breaches.js';
import type { CallDepth } from './call-depth.js';

type Stage = 'connecting' | 'established' | 'ended' | 'over';

/** A stage, the events that may come in it, and what follows; all others are breaches. */
const NEXT: Readonly<Record<Stage, { readonly [Type in CmEvent['type']]?: Stage }>> = {
  connecting: {
    established: 'established',
    rejected: 'ended',
    unreachable: 'ended',
    'timed-out': 'ended',
    'accept-failed': 'ended',
    disconnected: 'ended',
    'timewait-exit': 'over',
  },
  established: { disconnected: 'ended', 'timewait-exit': 'over' },
  ended: { 'timewait-exit': 'over' },
  over: {},
};

/** What stands over the members of a CM module. */
export function strictCm(cm: CmModule, depth: CallDepth, report: Report): Over<CmModule> {
  const connected = <O extends CmConnectOptions | CmAcceptOptions>(
    what: string,
    options: O,
    begin: (options: O) => CmConnection,
  ): CmConnection => {
    let stage: Stage = 'connecting';
    const { qpn } = options.qp;
    const onEvent = (event: CmEvent): void =>
      depth.handler(`connection event ${event.type}`, () => {
        const next = NEXT[stage][event.type];
        if (next === undefined) {
          const seen = `${event.type} of queue pair ${qpn}, whose connection is ${stage}`;
          report('connection-events', seen);
        }
        stage = next ?? stage;
        options.onEvent(event);
      });
    const connection = depth.call(what, () => begin({ ...options, onEvent }));
    return over<CmConnection>(connection, {
      disconnect: () => depth.call('disconnect', () => connection.disconnect()),
      notifyEstablished: () =>
        depth.call('notifyEstablished', () => connection.notifyEstablished()),
      abandon: () => {
        depth.call('abandon', () => connection.abandon());
        stage = 'over';
      },
    });
  };
  const request = (inner: CmRequest): CmRequest =>
    over<CmRequest>(inner, {
      accept: (options) => connected('accept', options, (each) => inner.accept(each)),
      reject: (options) => depth.call('reject', () => inner.reject(options)),
    });
  const members: Over<CmModule> = {
    connect: (options) => connected('connect', options, (each) => cm.connect(each)),
    listen: (options) => {
      const { onRequest, onResolve } = options;
      return depth.call('listen', () =>
        cm.listen({
          ...options,
          ...(onRequest && {
            onRequest: (each: CmRequest) =>
              depth.handler('connection request', () => onRequest(request(each))),
          }),
          ...(onResolve && {
            onResolve: (each) => depth.handler('service question', () => onResolve(each)),
          }),
        }),
      );
    },
    close: () => depth.call('close', () => cm.close()),
  };
  if (cm.resolve) {
    members.resolve = (options) =>
      depth.call('resolve', () =>
        cm.resolve!({
          ...options,
          onResult: (result) => depth.handler('service answer', () => options.onResult(result)),
        }),
      );
  }
  return members;
}
