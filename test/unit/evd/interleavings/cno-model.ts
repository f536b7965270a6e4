/** A CNO beside the EVD: it comes and goes, is waited for and triggered by hand. */
import type { Cno } from '../../../../core/evd/index.js';
import type { EvdWorld } from './evd-world.js';
import { Fatal, Violation } from './rules.js';
import type { Action } from './search.js';
import type { Core } from './space.js';

export class CnoModel {
  private readonly cno: Cno;
  private attached = false;
  private waiting = false;
  /** Fired by hand, and not carried out yet. */
  private triggering = false;
  /** The CNO has been told of everything that waits. */
  private told = true;

  constructor(
    private readonly world: EvdWorld,
    core: Core,
  ) {
    this.cno = new core.Cno(world.host, { id: 2 });
    const notify = this.cno.notify.bind(this.cno);
    this.cno.notify = (evd) => {
      if (evd === undefined) this.triggering = false;
      else this.beforeNotify();
      notify(evd);
    };
  }

  get list(): readonly Cno[] {
    return this.cno.isFreed ? [] : [this.cno];
  }

  get waits(): boolean {
    return this.waiting;
  }

  /** It is to hear of the next event. */
  get wants(): boolean {
    const { world } = this;
    const taken = world.isUpcallEnabled || world.takers.isThere;
    return this.attached && world.enabled && !taken;
  }

  actions(): Action[] {
    const list: Action[] = [];
    if (this.cno.isFreed) return list;
    if (!this.waiting) list.push(['cno wait', () => this.wait()]);
    if (!this.triggering) list.push(['cno trigger', () => this.trigger()]);
    if (this.world.freed) return list;
    list.push(
      this.attached ? ['detach', () => this.attach(false)] : ['attach', () => this.attach(true)],
      this.world.enabled
        ? ['disable', () => this.enable(false)]
        : ['enable', () => this.enable(true)],
    );
    return list;
  }

  somethingNew(): void {
    this.told = false;
  }

  evdFreed(): void {
    this.attached = false;
  }

  checkQuiet(): void {
    if (this.cno.isFreed) {
      if (this.waiting) throw new Violation('a waiter of a dead CNO');
      return;
    }
    if (this.waiting && this.state === 'TRIGGERED') {
      throw new Violation('a waiter waits although the CNO is triggered');
    }
    if (this.world.armFailed || !this.wants || this.told || this.world.pending === 0) return;
    throw new Violation('an event is stranded: the CNO has not been told');
  }

  fingerprint(): string {
    const { cno, attached, waiting, told, triggering } = this;
    if (cno.isFreed) return 'dead';
    const flags = [
      attached,
      waiting,
      told && this.world.pending > 0,
      cno['hint'] !== undefined,
      triggering,
    ];
    return `${this.state} ${flags.map(Number).join('')}`;
  }

  private get state(): string {
    return this.cno['state'];
  }

  private beforeNotify(): void {
    if (!this.wants) throw new Fatal('a CNO is notified although it does not want to be');
    if (this.world.pending === 0) throw new Fatal('a CNO is notified of an empty queue');
    this.told = true;
  }

  private wait(): void {
    this.waiting = true;
    this.cno.wait().then(
      (evd) => {
        this.waiting = false;
        if (evd !== undefined && evd !== this.world.evd) throw new Fatal('a strange hint');
      },
      (error: unknown) => {
        this.waiting = false;
        if (!this.cno.isFreed) throw new Fatal(`a waiter of the CNO got ${String(error)}`);
      },
    );
  }

  private trigger(): void {
    this.triggering = true;
    this.cno.trigger();
  }

  private attach(attached: boolean): void {
    this.attached = attached;
    this.world.evd.modifyCno(attached ? this.cno : null);
  }

  private enable(enabled: boolean): void {
    this.world.enabled = enabled;
    if (enabled) this.world.evd.enable();
    else this.world.evd.disable();
  }
}
