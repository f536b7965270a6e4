/** Unit attention conditions: what each nexus is yet to be told (SAM-5 5.14). */
import type { ConditionName } from '../common/conditions.js';

export class Attentions {
  private readonly pending = new Map<string, ConditionName[]>();

  /** From now on the nexus is told what happens. */
  open(nexus: string): void {
    if (!this.pending.has(nexus)) this.pending.set(nexus, []);
  }

  close(nexus: string): void {
    this.pending.delete(nexus);
  }

  /** For one nexus; a condition that is pending already is not repeated. */
  raise(nexus: string, condition: ConditionName): void {
    const conditions = this.pending.get(nexus);
    if (conditions?.includes(condition) === false) conditions.push(condition);
  }

  raiseForAll(condition: ConditionName, except?: string): void {
    for (const nexus of this.pending.keys()) if (nexus !== except) this.raise(nexus, condition);
  }

  /** A reset: what was pending before it does not matter any more. */
  reset(condition: ConditionName): void {
    for (const conditions of this.pending.values()) conditions.splice(0, Infinity, condition);
  }

  /** The oldest one, which is then reported. */
  take(nexus: string): ConditionName | undefined {
    return this.pending.get(nexus)?.shift();
  }
}
