/** An initiator over TCP that sends what a test says, and does no more than that. */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { PduStream } from '../../../../../../samples/ulp/iser/wire/index.js';
import {
  emitText,
  type initiatorFormats,
  readTargetPdu,
  type TargetPdu,
  type TextPair,
} from './formats.js';
import { NORMAL_KEYS, pduOf } from './scene.js';

const NO_DATA = new Uint8Array(0);
const OVER_ISER = new Set([
  'RDMAExtensions',
  'InitiatorRecvDataSegmentLength',
  'TargetRecvDataSegmentLength',
]);

export class RawInitiator {
  readonly received: TargetPdu[] = [];
  cmdSn = 1;
  /** Pings of the target are answered. */
  answersPings = true;
  private readonly stream = new PduStream(1 << 20);
  private readonly waiters: (() => void)[] = [];

  private constructor(readonly socket: Socket) {
    socket.on('error', () => {});
    socket.on('data', (chunk) => {
      for (const bytes of this.stream.push(chunk)) this.take(readTargetPdu(bytes.slice()));
    });
  }

  static async connect(port: number, address: string): Promise<RawInitiator> {
    const socket = connect(port, address);
    await once(socket, 'connect');
    return new RawInitiator(socket);
  }

  /** A session of the initiator port with this last byte. */
  static async logIn(port: number, address: string, name: number): Promise<RawInitiator> {
    const initiator = await RawInitiator.connect(port, address);
    const keys = NORMAL_KEYS.filter(([key]) => !OVER_ISER.has(key));
    initiator.login([...keys, ['MaxRecvDataSegmentLength', '262144']], name);
    await initiator.until(({ type }) => type === 'loginResponse');
    return initiator;
  }

  login(pairs: readonly TextPair[], name: number): void {
    const stages = { currentStage: 1, nextStage: 3, transit: true };
    const isid = Uint8Array.of(0x80, 0, 0, 0, 0, name);
    const values = { ...stages, isid, cmdSn: this.cmdSn, initiatorTaskTag: 1 };
    this.send('loginRequest', values, emitText(pairs));
  }

  send<K extends keyof typeof initiatorFormats>(
    type: K,
    values: object,
    data: Uint8Array = NO_DATA,
  ): void {
    this.socket.write(pduOf(type, values, data));
    this.socket.write(new Uint8Array(-data.length & 3));
  }

  /** READ(10) and WRITE(10) of blocks of 512 bytes from LBA 0 on, without data. */
  command(what: 'read' | 'write', tag: number, blocks: number, values: object = {}): void {
    const cdb = new Uint8Array(16);
    cdb[0] = what === 'read' ? 0x28 : 0x2a;
    new DataView(cdb.buffer).setUint16(7, blocks);
    this.send('scsiCommand', {
      ...{ cdb, initiatorTaskTag: tag, cmdSn: this.cmdSn++, attribute: 1, final: true },
      ...{ [what]: true, expectedDataTransferLength: blocks * 512, ...values },
    });
  }

  async until(isIt: (pdu: TargetPdu) => boolean): Promise<TargetPdu> {
    for (;;) {
      const found = this.received.find(isIt);
      if (found !== undefined) return found;
      await new Promise<void>((resolve) => this.waiters.push(resolve));
    }
  }

  private take(pdu: TargetPdu): void {
    this.received.push(pdu);
    if (pdu.type === 'nopIn' && this.answersPings && pdu.header.targetTransferTag !== NO_TAG) {
      const { targetTransferTag, lun } = pdu.header;
      const tags = { initiatorTaskTag: NO_TAG, targetTransferTag };
      this.send('nopOut', { ...tags, lun, immediate: true, final: true, cmdSn: this.cmdSn });
    }
    for (const resolve of this.waiters.splice(0)) resolve();
  }
}

const NO_TAG = 0xffff_ffff;
