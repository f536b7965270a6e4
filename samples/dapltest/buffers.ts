/** Registered buffers of the operations. */
import type { Ia, Lmr, LmrSegment, Pz } from 'dapl';

import { lengthOf, type Shape } from './operations.js';

/** Alignment of segments, as in the C program. */
const ALIGNMENT_BYTES = 256;

/** The buffer of one operation, on one side. */
export class OperationBuffer {
  readonly lmr: Lmr;
  readonly lengthBytes: number;
  /**
   * Segments to post: those of the shape, or one for the whole buffer if the peer reads or writes.
   */
  readonly segments: readonly LmrSegment[];

  /** @param privileges REMOTE_READ or REMOTE_WRITE among them: the peer sees one run of bytes */
  constructor(ia: Ia, pz: Pz, shape: Shape, privileges: number, layout: 'segments' | 'run') {
    const { segmentBytes, segments } = shape;
    const strideBytes = Math.ceil(segmentBytes / ALIGNMENT_BYTES) * ALIGNMENT_BYTES;
    this.lengthBytes = lengthOf(shape);
    this.lmr = ia.allocate(Math.max(strideBytes * segments, ALIGNMENT_BYTES), { pz, privileges });
    this.segments =
      layout === 'run'
        ? [this.lmr.segment(0, this.lengthBytes)]
        : Array.from({ length: segments }, (_, index) =>
            this.lmr.segment(index * strideBytes, segmentBytes),
          );
  }

  fill(value: number): void {
    for (const { bytes } of this.segments) bytes.fill(value);
  }

  /** @throws Error if a byte differs */
  check(value: number, what: string): void {
    for (const [index, { bytes }] of this.segments.entries()) {
      const at = bytes.findIndex((byte) => byte !== value);
      if (at < 0) continue;
      const place = `segment ${index}, byte ${at}`;
      throw new Error(`${what}: ${place} is ${bytes[at]}, and should be ${value}`);
    }
  }
}
