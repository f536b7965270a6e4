/** Timers of this process in the form that sessions take. They do not keep the process alive. */
export function alarm(ms: number, run: () => void): () => void {
  const timer = setTimeout(run, ms).unref();
  return () => clearTimeout(timer);
}
