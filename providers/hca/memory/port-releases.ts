/**
 * What is given back once no packet on its way refers to it: regions and paths to the port, the
 * memory of queue pairs to the slab.
 */
import type { Piece } from '../../../core/spi/index.js';

export interface PortReleaser {
  releaseRegion(region: number): void;
  releasePath(path: number): void;
}

export class PortReleases {
  private readonly regions: number[] = [];
  private readonly paths: number[] = [];
  private readonly pieces: Piece[] = [];

  constructor(private readonly releaser: PortReleaser) {}

  get empty(): boolean {
    return this.regions.length + this.paths.length + this.pieces.length === 0;
  }

  addRegion(region: number): void {
    this.regions.push(region);
  }

  addPath(path: number): void {
    this.paths.push(path);
  }

  /** Inline payload is read there when its packet leaves. */
  addPiece(piece: Piece): void {
    this.pieces.push(piece);
  }

  /** Nothing is on its way. */
  run(): void {
    for (const region of this.regions) this.releaser.releaseRegion(region);
    for (const path of this.paths) this.releaser.releasePath(path);
    for (const piece of this.pieces) piece.free();
    this.regions.length = 0;
    this.paths.length = 0;
    this.pieces.length = 0;
  }
}
