/**
 * The responder's part in READ and atomics: keeps requests in responder resources and makes their
 * responses, for first and repeated requests (IBTA 9.7.4.1.2, 9.7.5.1.9).
 */
import { Access, COPIED_PAYLOAD_BYTES } from '../../../core/spi/index.js';
import { MEMORY_CHECK } from '../memory/memory.js';
import type { Domain } from '../memory/domain.js';
import { MAX_MESSAGE_BYTES } from '../common/parameters.js';
import { FAULT } from '../connected/message-receiver.js';
import { RcZeroCopyReads, type AnswerCopy } from './zero-copy-reads.js';
import type { RcQueuePair } from './queue-pair.js';
import type { RcResponder } from './responder.js';
import type { ReceivedPacket } from '../common/received-packet.js';
import { RES, RESOURCE, ResponderResources } from './responder-resources.js';
import {
  AETH_LENGTH,
  rethDmaLength,
  rethRkey,
  rethVaHi,
  rethVaLo,
  writeAeth,
  atomicCompareHi,
  atomicCompareLo,
  atomicRkey,
  atomicSwapAddHi,
  atomicSwapAddLo,
  atomicVaHi,
  atomicVaLo,
  writeAtomicAckEth,
} from '../wire/extended-headers.js';
import { SYNDROME } from '../wire/aeth-syndrome.js';
import { BTH_LENGTH, bthPad } from '../../../core/spi/wire/bth.js';
import { OPERATION, RC } from '../../../core/spi/wire/opcode.js';
import {
  AETH_OFFSET_OF,
  ATOMIC_ETH_OFFSET_OF,
  OPERATION_OF,
  RETH_OFFSET_OF,
} from '../../../core/spi/wire/packet-layout.js';
import { PSN_MASK, psnAdd } from '../wire/psn.js';

const TWO_32 = 4294967296;

export class RcReads {
  private readonly resources: ResponderResources;
  /** By resource: the domain of its key, which on an XRC target is not always the same. */
  private readonly domains: (Domain | undefined)[] = [];
  /** Set from the first answer that is left in its memory. */
  private zeroCopy: RcZeroCopyReads | undefined = undefined;

  /** @param depth READ and atomic requests that the peer may have outstanding */
  constructor(
    private readonly qp: RcQueuePair,
    private readonly responder: RcResponder,
    depth: number,
  ) {
    this.resources = new ResponderResources(depth);
  }

  /** Answers are not asked for again. */
  end(): void {
    this.zeroCopy?.end();
    this.zeroCopy = undefined;
  }

  // --- new requests -----------------------------------------------------------------------------

  executeRead(rx: ReceivedPacket): void {
    const { qp, responder } = this;
    const reth = rx.offset + RETH_OFFSET_OF[rx.opcode]!;
    const length = rethDmaLength(rx.view, reth);
    const resource = length > MAX_MESSAGE_BYTES ? -1 : this.take();
    if (resource < 0) {
      responder.fail(FAULT.request);
      return;
    }
    const lo = rethVaLo(rx.view, reth);
    const hi = rethVaHi(rx.view, reth);
    const key = rethRkey(rx.view, reth);
    if (length > 0 && !this.readable(qp.remoteDomain, key, lo, hi, length)) {
      responder.fail(FAULT.access);
      return;
    }
    const count = Math.max(1, Math.ceil(length / qp.mtuBytes));
    const at = this.keep(resource, RESOURCE.READ, count);
    this.keepRange(at, lo, hi, key, length);
    this.answer(at, 0, count, 0, length);
    qp.hca.pacer.readStreams.onRead(length, qp.hca.nowUs);
    qp.hca.counters.readsAnswered += 1;
    this.owe(resource, at);
  }

  executeAtomic(rx: ReceivedPacket): void {
    const { qp, responder } = this;
    const header = rx.offset + ATOMIC_ETH_OFFSET_OF[rx.opcode]!;
    const lo = atomicVaLo(rx.view, header);
    const hi = atomicVaHi(rx.view, header);
    const key = atomicRkey(rx.view, header);
    const resource = (lo & 7) !== 0 ? -1 : this.take();
    if (resource < 0) {
      responder.fail(FAULT.request);
      return;
    }
    const { memory, placements } = qp.hca;
    const verdict = memory.checkRemote(qp, qp.remoteDomain, key, lo, hi, 8, Access.REMOTE_ATOMIC);
    if (verdict !== MEMORY_CHECK.OK) {
      responder.fail(FAULT.access);
      return;
    }
    placements.flush();
    const { view } = memory.region;
    const original = memory.offset;
    const psn = responder.ePsn;
    const at = this.keep(resource, RESOURCE.ATOMIC, 1);
    const { words } = this.resources;
    words[at + RES.ORIGINAL_LO] = view.getUint32(original, true);
    words[at + RES.ORIGINAL_HI] = view.getUint32(original + 4, true);
    if (OPERATION_OF[rx.opcode] === OPERATION.compareSwap) this.compareSwap(rx, header, at);
    else this.fetchAdd(rx, header, at);
    responder.noteExecuted(psn);
    qp.hca.counters.atomicsAnswered += 1;
    this.answer(at, 0, 1, 0, 8);
    this.owe(resource, at);
  }

  private compareSwap(rx: ReceivedPacket, header: number, at: number): void {
    const { words } = this.resources;
    const { memory } = this.qp.hca;
    if (
      words[at + RES.ORIGINAL_LO] !== atomicCompareLo(rx.view, header) ||
      words[at + RES.ORIGINAL_HI] !== atomicCompareHi(rx.view, header)
    ) {
      return;
    }
    const { view } = memory.region;
    view.setUint32(memory.offset, atomicSwapAddLo(rx.view, header), true);
    view.setUint32(memory.offset + 4, atomicSwapAddHi(rx.view, header), true);
  }

  private fetchAdd(rx: ReceivedPacket, header: number, at: number): void {
    const { words } = this.resources;
    const { memory } = this.qp.hca;
    const low = words[at + RES.ORIGINAL_LO]! + atomicSwapAddLo(rx.view, header);
    const carry = low >= TWO_32 ? 1 : 0;
    const high = words[at + RES.ORIGINAL_HI]! + atomicSwapAddHi(rx.view, header) + carry;
    memory.region.view.setUint32(memory.offset, low >>> 0, true);
    memory.region.view.setUint32(memory.offset + 4, high >>> 0, true);
  }

  /** A free resource; -1 when there is none for this peer. */
  private take(): number {
    return this.resources.count === 0 ? -1 : this.resources.take();
  }

  /** A resource has a new request; the index of its first word. @param count PSNs */
  private keep(resource: number, kind: number, count: number): number {
    const at = this.resources.wordOf(resource);
    const { words } = this.resources;
    this.zeroCopy?.reuse(resource);
    words[at + RES.KIND] = kind;
    words[at + RES.FIRST_PSN] = this.responder.ePsn;
    words[at + RES.COUNT] = count;
    words[at + RES.ANSWERED] = 0;
    this.domains[resource] = this.qp.remoteDomain;
    this.responder.advance(count);
    words[at + RES.MSN] = this.responder.msn;
    return at;
  }

  /** Keeps the range that a READ reads. */
  private keepRange(at: number, lo: number, hi: number, key: number, length: number): void {
    const { words } = this.resources;
    words[at + RES.ADDRESS_LO] = lo;
    words[at + RES.ADDRESS_HI] = hi;
    words[at + RES.RKEY] = key;
    words[at + RES.LENGTH] = length;
  }

  /** The answer is now packets `start` to `end` - 1, of `length` bytes from `offset` on. */
  private answer(at: number, start: number, end: number, offset: number, length: number): void {
    const { words } = this.resources;
    words[at + RES.NEXT] = start;
    words[at + RES.START] = start;
    words[at + RES.END] = end;
    words[at + RES.OFFSET] = offset;
    words[at + RES.BYTES] = length;
  }

  /** Owes the answer of a resource. */
  private owe(resource: number, at: number): void {
    const { words } = this.resources;
    const { responses } = this.responder;
    responses.resource(words[at + RES.FIRST_PSN]!, resource);
    this.qp.hca.scheduler.scheduleResponses(this.qp, this.qp.acksFirst);
  }

  // --- duplicates -------------------------------------------------------------------------------

  /**
   * Answers with exactly the bytes that are asked for now, from within those of the first request
   * (as rdma_rxe): they may begin at another address, and be fewer.
   */
  repeatRead(rx: ReceivedPacket): void {
    const { words } = this.resources;
    const { mtuBytes, hca } = this.qp;
    const resource = this.resources.find(RESOURCE.READ, rx.psn);
    const at = this.resources.wordOf(resource);
    const reth = rx.offset + RETH_OFFSET_OF[rx.opcode]!;
    const length = rethDmaLength(rx.view, reth);
    const offset = resource < 0 ? -1 : this.offsetInRead(rx, reth, at);
    const start = (rx.psn - words[at + RES.FIRST_PSN]!) & PSN_MASK;
    const end = start + Math.max(1, Math.ceil(length / mtuBytes));
    const fits = offset + length <= words[at + RES.LENGTH]! && end <= words[at + RES.COUNT]!;
    if (offset < 0 || !fits) {
      hca.counters.drops.replayUnknown += 1;
      return;
    }
    this.zeroCopy?.onRepeated();
    if (words[at + RES.NEXT]! < words[at + RES.END]!) {
      this.changeAnswer(at, start, end, offset, length);
    } else {
      this.answer(at, start, end, offset, length);
      this.owe(resource, at);
    }
  }

  /** The start of a repeated READ, in bytes of the one kept; -1 if not in it, or of another key. */
  private offsetInRead(rx: ReceivedPacket, reth: number, at: number): number {
    const { words } = this.resources;
    if (rethRkey(rx.view, reth) !== words[at + RES.RKEY]) return -1;
    const high = rethVaHi(rx.view, reth) - words[at + RES.ADDRESS_HI]!;
    const offset = high * TWO_32 + rethVaLo(rx.view, reth) - words[at + RES.ADDRESS_LO]!;
    return offset <= words[at + RES.LENGTH]! ? offset : -1;
  }

  /**
   * Handles a repeated READ while an answer is owed. A first answer continues to its end, from the
   * packet that the peer misses; a repetition is replaced by the latest request.
   */
  private changeAnswer(
    at: number,
    start: number,
    end: number,
    offset: number,
    length: number,
  ): void {
    const { words } = this.resources;
    const distance = (start - words[at + RES.START]!) * this.qp.mtuBytes;
    const inOwed = offset === words[at + RES.OFFSET]! + distance;
    const isToCome = inOwed && start >= words[at + RES.NEXT]!;
    if (words[at + RES.ANSWERED] === 1) {
      if (!isToCome || end !== words[at + RES.END]) this.answer(at, start, end, offset, length);
    } else if (inOwed && !isToCome) {
      this.answer(at, start, words[at + RES.COUNT]!, offset, words[at + RES.LENGTH]! - offset);
    }
  }

  repeatAtomic(rx: ReceivedPacket): void {
    const { words } = this.resources;
    const resource = this.resources.find(RESOURCE.ATOMIC, rx.psn);
    if (resource < 0) {
      this.qp.hca.counters.drops.replayUnknown += 1;
      return;
    }
    const at = this.resources.wordOf(resource);
    if (words[at + RES.NEXT] !== words[at + RES.END]) return;
    this.answer(at, 0, 1, 0, 8);
    this.owe(resource, at);
  }

  /**
   * A NAK ends the connection, and a peer in ERR is not asked again: answers whose memory is gone,
   * so that they may have changed on their way, go once more before it.
   */
  repeatKept(): void {
    const { zeroCopy, resources } = this;
    if (zeroCopy === undefined) return;
    const { words } = resources;
    for (let age = 1; age <= resources.count; age++) {
      const resource = resources.ofAge(age);
      const copy = zeroCopy.copyOf(resource);
      if (copy === undefined) continue;
      const at = resources.wordOf(resource);
      const { start, end } = copy;
      const from = start * this.qp.mtuBytes;
      const to = Math.min(end * this.qp.mtuBytes, words[at + RES.LENGTH]!);
      this.answer(at, start, end, from, to - from);
      const { responses } = this.responder;
      responses.resourceFirst(words[at + RES.FIRST_PSN]!, resource);
    }
  }

  // --- responses --------------------------------------------------------------------------------

  /**
   * Sends one packet of the resource that stands first among the responses; `psn` tells it from a
   * younger one in the same place. True when it owes nothing more.
   */
  transmitOne(resource: number, psn: number): boolean {
    const { qp } = this;
    const { words } = this.resources;
    const at = this.resources.wordOf(resource);
    const next = words[at + RES.NEXT]!;
    if (words[at + RES.FIRST_PSN] !== psn || next >= words[at + RES.END]!) return true;
    if (words[at + RES.KIND] === RESOURCE.ATOMIC) this.sendAtomicResult(at);
    else if (!this.sendReadPacket(at, next)) {
      if (words[at + RES.ANSWERED] === 0) {
        return !this.responder.revoke(psnAdd(words[at + RES.FIRST_PSN]!, next));
      }
      // Answered in full before the memory went: a late duplicate must not end the connection.
      qp.hca.counters.drops.replayUnknown += 1;
      words[at + RES.NEXT] = words[at + RES.END]!;
      return true;
    }
    words[at + RES.NEXT] = next + 1;
    if (next + 1 < words[at + RES.END]!) return false;
    words[at + RES.ANSWERED] = 1;
    return true;
  }

  /** False when the memory is no longer there to be read. */
  private sendReadPacket(at: number, packet: number): boolean {
    const { qp } = this;
    const { words } = this.resources;
    const sent = (packet - words[at + RES.START]!) * qp.mtuBytes;
    const offset = words[at + RES.OFFSET]! + sent;
    const length = Math.min(qp.mtuBytes, words[at + RES.BYTES]! - sent);
    const low = words[at + RES.ADDRESS_LO]! + offset;
    const high = words[at + RES.ADDRESS_HI]! + (low >= TWO_32 ? 1 : 0);
    const resource = at / RES.STRIDE;
    const domain = this.domains[resource]!;
    const key = words[at + RES.RKEY]!;
    const copy = this.copyOf(resource, offset, length);
    if (!copy && length > 0 && !this.readable(domain, key, low >>> 0, high, length)) return false;
    const first = packet === words[at + RES.START];
    const last = packet + 1 === words[at + RES.END];
    const opcode = readResponseOpcode(first, last);
    const { tx } = qp.hca;
    const psn = psnAdd(words[at + RES.FIRST_PSN]!, packet);
    const header = qp.openResponse(opcode, psn, bthPad(length));
    if (copy) tx.addCopied(copy.port, offset - copy.start * qp.mtuBytes, length);
    else if (length > 0) this.addPayload(resource, offset, length);
    const aeth = AETH_OFFSET_OF[opcode]!;
    if (aeth !== 0) writeAeth(tx.view, header + aeth, SYNDROME.ack, words[at + RES.MSN]!);
    return true;
  }

  /** The copy that has these bytes of a READ. */
  private copyOf(resource: number, offset: number, length: number): AnswerCopy | undefined {
    const copy = this.zeroCopy?.copyOf(resource);
    if (copy === undefined || length === 0) return undefined;
    const { mtuBytes } = this.qp;
    const has = offset >= copy.start * mtuBytes && offset + length <= copy.end * mtuBytes;
    return has ? copy : undefined;
  }

  /**
   * Adds the payload found by `readable`, from memory or from a copy. @param offset in the READ, in
   * bytes
   */
  private addPayload(resource: number, offset: number, length: number): void {
    const { tx, memory } = this.qp.hca;
    const { region } = memory;
    if (length > COPIED_PAYLOAD_BYTES) {
      this.zeroCopy ??= new RcZeroCopyReads(this.qp, this.resources);
      if (this.zeroCopy.mayStay(resource, region, memory.offset - offset)) {
        tx.addSegment(region.port, memory.offset, length);
        return;
      }
    }
    tx.addCopied(region.port, memory.offset, length);
  }

  private sendAtomicResult(at: number): void {
    const { qp } = this;
    const { words } = this.resources;
    const { view } = qp.hca.tx;
    const header = qp.openResponse(RC.atomicAcknowledge, words[at + RES.FIRST_PSN]!, 0);
    writeAeth(view, header + BTH_LENGTH, SYNDROME.ack, words[at + RES.MSN]!);
    writeAtomicAckEth(
      view,
      header + BTH_LENGTH + AETH_LENGTH,
      words[at + RES.ORIGINAL_HI]!,
      words[at + RES.ORIGINAL_LO]!,
    );
  }

  private readable(domain: Domain, key: number, lo: number, hi: number, length: number): boolean {
    const { qp } = this;
    const { memory } = qp.hca;
    const right = Access.REMOTE_READ;
    const verdict = memory.checkRemote(qp, domain, key, lo, hi, length, right);
    return verdict === MEMORY_CHECK.OK;
  }
}

function readResponseOpcode(first: boolean, last: boolean): number {
  if (first) return last ? RC.readResponseOnly : RC.readResponseFirst;
  return last ? RC.readResponseLast : RC.readResponseMiddle;
}
