/**
 * Traces calls and events of the provider contract, one line each (`dapl/plugins/trace`):
 * connections, states and events of queue pairs, work requests and their completions. It works with
 * any provider. `DAPL_LOG` shows the consumer's view instead (docs/logging.md).
 */
import {
  BOOLEAN,
  checkOptions,
  checkValue,
  FUNCTION,
  optional,
} from '../../core/spi/checks/index.js';
import { refusing } from '../../core/spi/errors/consumer-errors.js';
import {
  type Clock,
  type CmConnection,
  type CmEvent,
  type CmModule,
  type ConfiguredProvider,
  type Device,
  PROVIDER,
} from '../../core/spi/index.js';
import {
  decorate,
  observedDevice,
  over,
  type Over,
  type PostedRequest,
} from '../../core/spi/decorators/index.js';
import {
  acceptText,
  completionText,
  connectText,
  eventText,
  listenText,
  qpEventText,
  rejectText,
  requestedText,
  requestText,
  stateText,
} from './texts.js';

export interface TraceEntry {
  /** Time of the device's clock, in microseconds; for mock, virtual time. */
  readonly timeUs: number;
  /** Name of the device. */
  readonly device: string;
  readonly part: 'connection' | 'queue-pair' | 'request' | 'completion';
  /** `qp 17 send 4: RDMA_WRITE, 4096 bytes`. */
  readonly text: string;
}

export interface TraceOptions {
  /** Receives each entry. Default: prints `traceLine` on standard error. */
  readonly write?: (entry: TraceEntry) => void;
  /**
   * True to trace work requests and completions, too; default true. Receives of QP1, for management
   * datagrams, are traced when they complete, not when they are posted: a device posts 512 as it
   * opens.
   */
  readonly requests?: boolean;
}

/** The QP of general services, which carries the messages of the CM (IBTA 9.6.1.1). */
const MANAGEMENT_QPN = 1;

const OPTIONS = { write: optional(FUNCTION), requests: optional(BOOLEAN) };

/** `      12.4 us  softroce 10.0.0.1  qp 17 send 4: SEND, 5 bytes`. */
export function traceLine({ timeUs, device, text }: TraceEntry): string {
  return `${timeUs.toFixed(1).padStart(12)} us  ${device}  ${text}`;
}

/**
 * Wraps a provider so that its device and its CM module are traced.
 * @throws DatError DAT_INVALID_PARAMETER for invalid options
 */
export function trace(
  provider: ConfiguredProvider,
  options: TraceOptions = {},
): ConfiguredProvider {
  const refuse = refusing('trace');
  checkValue('the provider', provider, PROVIDER, refuse);
  checkOptions(options, OPTIONS, refuse);
  const { write = toStandardError, requests = true } = options;
  let name = provider.instance.deviceKey;
  const teller =
    (clock: Clock): Tell =>
    (part, text) =>
      write({ timeUs: clock.now(), device: name, part, text });
  return decorate(
    provider,
    {
      device: (inner, { clock }) => {
        ({ name } = inner);
        return traced(inner, clock, teller(clock), requests);
      },
      cm: (inner, { clock }) => tracedCm(inner, teller(clock)),
    },
    { name: 'trace' },
  );
}

type Tell = (part: TraceEntry['part'], text: string) => void;

function toStandardError(entry: TraceEntry): void {
  process.stderr.write(`${traceLine(entry)}\n`);
}

function traced(device: Device, clock: Clock, tell: Tell, requests: boolean): Over<Device> {
  return observedDevice(device, clock, {
    changed: (qpn, state) => tell('queue-pair', stateText(qpn, state)),
    event: (qpn, event) => tell('queue-pair', qpEventText(qpn, event)),
    ...(requests && {
      posted: (request) => {
        if (!isOfManagement(request)) tell('request', requestText(request));
      },
      completed: (completion) => tell('completion', completionText(completion)),
    }),
  });
}

/**
 * True for a receive of QP1: a device posts 512 when it opens, and one more for each MAD that
 * arrives.
 */
function isOfManagement({ kind, qpn }: PostedRequest): boolean {
  return kind === 'receive' && qpn === MANAGEMENT_QPN;
}

function tracedCm(cm: CmModule, tell: Tell): Over<CmModule> {
  const told =
    (qpn: number, onEvent: (event: CmEvent) => void) =>
    (event: CmEvent): void => {
      tell('connection', eventText(qpn, event));
      onEvent(event);
    };
  /** Reports ends that the consumer starts: they have no event if the connection awaits none. */
  const ending = (qpn: number, connection: CmConnection): CmConnection =>
    over<CmConnection>(connection, {
      disconnect: () => {
        tell('connection', `qp ${qpn} disconnect`);
        connection.disconnect();
      },
      abandon: () => {
        tell('connection', `qp ${qpn} abandon`);
        connection.abandon();
      },
    });
  return {
    listen: (options) => {
      tell('connection', listenText(options));
      const { onRequest } = options;
      if (onRequest === undefined) return cm.listen(options);
      return cm.listen({
        ...options,
        onRequest: (request) => {
          tell('connection', requestedText(request));
          onRequest(
            over(request, {
              accept: (accepting): CmConnection => {
                const { qpn } = accepting.qp;
                tell('connection', acceptText(qpn));
                const onEvent = told(qpn, accepting.onEvent);
                return ending(qpn, request.accept({ ...accepting, onEvent }));
              },
              reject: (rejecting) => {
                tell('connection', rejectText(rejecting));
                request.reject(rejecting);
              },
            }),
          );
        },
      });
    },
    connect: (options) => {
      const { qpn } = options.qp;
      tell('connection', connectText(options));
      return ending(qpn, cm.connect({ ...options, onEvent: told(qpn, options.onEvent) }));
    },
  };
}
