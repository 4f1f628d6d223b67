/**
 * Does the work when it is asked for, and not again before it is over and `ms` have passed: what is asked for meanwhile is done once then.
 * `work` never rejects.
 */
export function paced(work: () => Promise<void>, ms: number): () => void {
  let resting = false
  let asked = false
  const run = async () => {
    resting = true
    asked = false
    await work()
    setTimeout(() => {
      resting = false
      if (asked) void run()
    }, ms).unref()
  }
  return () => {
    if (resting) asked = true
    else void run()
  }
}
