/** Regions and paths that are given back to the port once no packet on its way refers to them. */
export interface PortReleaser {
  releaseRegion(region: number): void;
  releasePath(path: number): void;
}

export class PortReleases {
  private readonly regions: number[] = [];
  private readonly paths: number[] = [];

  constructor(private readonly releaser: PortReleaser) {}

  get empty(): boolean {
    return this.regions.length + this.paths.length === 0;
  }

  addRegion(region: number): void {
    this.regions.push(region);
  }

  addPath(path: number): void {
    this.paths.push(path);
  }

  /** Nothing is on its way. */
  run(): void {
    for (const region of this.regions) this.releaser.releaseRegion(region);
    for (const path of this.paths) this.releaser.releasePath(path);
    this.regions.length = 0;
    this.paths.length = 0;
  }
}
