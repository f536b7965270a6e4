/** softroce with the options of a contender. */
import { type SoftroceOptions, softroce } from 'dapl/providers/softroce';

/** A commit of before, which `--against` measures by this code, has UDP and nothing else. */
export function provider(options: SoftroceOptions): ReturnType<typeof softroce> {
  const { shm, ...others } = options;
  if (shm !== false) return softroce(options);
  try {
    return softroce(options);
  } catch {
    return softroce(others);
  }
}
