/** Timers of this process, as sessions take them. They do not keep it alive. */
export function alarm(ms: number, run: () => void): () => void {
  const timer = setTimeout(run, ms).unref();
  return () => clearTimeout(timer);
}
