/**
 * Endpoint (dat_ep): one side of a connection. Requests and receives are posted synchronously and
 * complete as events; connecting and disconnecting is asynchronous, as in DAT: calls return at once
 * and events follow on the connect EVD.
 */
import { DatError, spiCall } from '../../errors/index.js';
import { ipFromGid, PortSpace, serviceIdOf } from '../../spi/index.js';
import type { CloseFlag } from '../common/constants.js';
import {
  checkCommonAddress,
  checkConnectOptions,
  checkDupOptions,
  type CheckedConnectOptions,
  type CommonAddress,
  type ConnectOptions,
  type DupConnectOptions,
} from './connect-options.js';
import { modifiedInit, type ModifyOptions } from './modify.js';
import { EpObserving } from './observing.js';
import { checkOneOf } from '../common/guards.js';
import { checkHandle } from '../common/handle.js';
import { Symbolic } from '../common/trace.js';

/** Made by `ia.createEndpoint()`. */
export class Ep extends EpObserving {
  /**
   * Starts to connect (dat_ep_connect). The outcome is an event on the connect EVD: ESTABLISHED,
   * PEER_REJECTED, NON_PEER_REJECTED, UNREACHABLE, TIMED_OUT.
   * @throws DatError DAT_INVALID_STATE unless UNCONNECTED; DAT_INVALID_ADDRESS;
   * DAT_INVALID_PARAMETER; DAT_MODEL_NOT_SUPPORTED (QoS, multipath)
   */
  connect(options: ConnectOptions): void {
    const operation = 'ep.connect';
    this.core.context.trace?.(operation, {
      ep: this.id,
      address: options?.address,
      connQual: options?.connQual,
      timeoutMs: options?.timeoutMs,
    });
    this.assertLive(operation);
    this.checkLegal(operation, 'connect');
    this.begin(operation, checkConnectOptions(operation, options));
  }

  /**
   * Starts to connect to where a connected endpoint is connected to (dat_ep_dup_connect): the same
   * address and connection qualifier. The outcome is an event, as of `connect`.
   * @param connected an endpoint of this adapter that connected by itself
   * @throws DatError as `connect`; DAT_INVALID_STATE when `connected` is not CONNECTED;
   * DAT_INVALID_HANDLE; DAT_INVALID_PARAMETER when it accepted its connection: the peer then
   * listens nowhere that we know
   */
  dupConnect(connected: Ep, options: DupConnectOptions = {}): void {
    const operation = 'ep.dupConnect';
    const trace = this.core.context.trace;
    trace?.(operation, { ep: this.id, connected, timeoutMs: options?.timeoutMs });
    this.assertLive(operation);
    this.checkLegal(operation, 'connect');
    checkHandle(operation, Ep, 'EP', connected, this.core);
    if (connected.state !== 'CONNECTED') {
      throw new DatError('DAT_INVALID_STATE', {
        subtype: 'DAT_INVALID_STATE_EP_NOTREADY',
        operation,
        message: `endpoint ${connected.id}, to connect like, is ${connected.state}`,
        value: connected.state,
      });
    }
    const { target } = connected.connection;
    if (target === undefined) {
      throw new DatError('DAT_INVALID_PARAMETER', {
        subtype: 'DAT_INVALID_ARG2',
        operation,
        message: `endpoint ${connected.id} accepted its connection: its peer need not listen`,
        hint: 'use connect() with an address and a connection qualifier',
        value: connected,
      });
    }
    this.begin(operation, { ...target, ...checkDupOptions(operation, options) });
  }

  /**
   * Starts to connect by one address that says everything (dat_ep_common_connect): the text
   * `192.0.2.2:7471` or `[2001:db8::2]:7471`, or what `net` calls an AddressInfo. The outcome is an
   * event, as of `connect`.
   * @throws DatError as `connect`
   */
  commonConnect(address: CommonAddress, options: DupConnectOptions = {}): void {
    const operation = 'ep.commonConnect';
    const trace = this.core.context.trace;
    trace?.(operation, { ep: this.id, address, timeoutMs: options?.timeoutMs });
    this.assertLive(operation);
    this.checkLegal(operation, 'connect');
    const target = checkCommonAddress(operation, address);
    this.begin(operation, { ...target, ...checkDupOptions(operation, options) });
  }

  /**
   * Ends the connection (dat_ep_disconnect); DISCONNECTED follows on the connect EVD. No-op in
   * DISCONNECTED, and `graceful` also in DISCONNECT_PENDING.
   * @param flag `graceful` lets posted requests finish first; `abrupt` (default) flushes them
   * @throws DatError DAT_INVALID_STATE when there is nothing to disconnect
   */
  disconnect(flag: CloseFlag = 'abrupt'): void {
    const operation = 'ep.disconnect';
    this.core.context.trace?.(operation, {
      ep: this.id,
      flag: new Symbolic(typeof flag === 'string' ? flag : '?'),
    });
    this.assertLive(operation);
    checkOneOf(operation, 2, 'flag', flag, ['abrupt', 'graceful']);
    const call = flag === 'graceful' ? 'disconnectGraceful' : 'disconnectAbrupt';
    if (this.checkLegal(operation, call) === 'no-op') return;
    this.counts.count('disconnect');
    this.connection.disconnect(flag === 'graceful');
  }

  /**
   * Makes a disconnected endpoint usable again (dat_ep_reset) with a fresh queue pair number.
   * Completions that have come stay until they are dequeued, and the event of the end is in its
   * place among them; a request or receive that the device has not flushed yet (see `getStatus`) is
   * gone. No-op in UNCONNECTED.
   * @throws DatError DAT_INVALID_STATE in any other state
   */
  reset(): void {
    const operation = 'ep.reset';
    this.core.context.trace?.(operation, { ep: this.id });
    this.assertLive(operation);
    if (this.checkLegal(operation, 'reset') === 'no-op') return;
    const next = this.createQueues(this.init);
    this.takeInCompletions();
    this.connection.reset();
    spiCall({ operation }, () => this.events.retire(this.queues));
    this.queues = next;
  }

  /**
   * Changes what the endpoint was made with (dat_ep_modify). Which field may be changed in which
   * state is the table of modify-table.ts. Receives that are posted stay posted; under another
   * zone they complete with a protection error when a message wants them.
   * @throws DatError DAT_INVALID_PARAMETER for a field that is read-only, or a value out of range;
   * DAT_INVALID_STATE for a field that cannot be changed in this state; DAT_INVALID_HANDLE;
   * DAT_MODEL_NOT_SUPPORTED. Nothing has changed then.
   */
  modify(options: ModifyOptions): void {
    const operation = 'ep.modify';
    this.core.context.trace?.(operation, { ep: this.id, ...fieldsOf(options) });
    this.assertLive(operation);
    const { init, core } = this;
    const { next, rebuild } = modifiedInit(operation, options, {
      init,
      core,
      queues: this.queues,
      checkLegal: (call) => void this.checkLegal(operation, call),
    });
    const swap = this.events.prepare(next);
    if (rebuild) {
      try {
        const queues = this.createQueues(next);
        queues.takeReceives(this.queues);
        this.destroyQueues(operation, this.queues);
        this.queues = queues;
      } catch (error) {
        swap.abort();
        throw error;
      }
    }
    init.pz.users--;
    next.pz.users++;
    this.init = next;
    swap.commit();
    const soft = next.attributes.srqSoftHighWatermark;
    if (soft !== init.attributes.srqSoftHighWatermark)
      this.setWatermark(soft, this.watermarks?.hard ?? Infinity);
  }

  /**
   * Frees the endpoint (dat_ep_free); a connection is ended abruptly, without an event. Completions
   * that are not dequeued go with it: `evd.query().dropped` counts them.
   * @throws DatError DAT_INVALID_STATE while a service point or a connection request holds it
   */
  free(): void {
    const operation = 'ep.free';
    this.core.context.trace?.(operation, { ep: this.id });
    this.assertLive(operation);
    this.checkLegal(operation, 'free');
    this.shutdown();
    this.takeInCompletions();
    this.destroy(operation);
  }

  [Symbol.dispose](): void {
    if (!this.isFreed) this.free();
  }

  protected asEp(): Ep {
    return this;
  }

  private begin(operation: string, options: CheckedConnectOptions): void {
    const { remoteGid, port, privateData, timeoutUs } = options;
    const { ackTimeout, pathMtuBytes } = this.attributes.transport;
    const { cm } = this.core.context;
    spiCall({ operation, value: ipFromGid(remoteGid) }, () =>
      this.connection.connect(port, (onEvent) =>
        cm.connect({
          ...this.cmParameters(),
          qp: this.queues.qp,
          remoteGid,
          serviceId: serviceIdOf(PortSpace.TCP, port),
          privateData,
          timeoutUs,
          ackTimeout,
          pathMtuBytes,
          onEvent,
        }),
      ),
    );
    this.counts.count('connect');
  }
}

/** Names of what a modify changes, for the trace: written before anything is checked. */
function fieldsOf(options: unknown): { readonly fields: Symbolic } {
  const given = typeof options === 'object' && options !== null ? Object.keys(options) : [];
  return { fields: new Symbolic(given.join('|')) };
}
