/** A list that the other end reads item by item. */
export function listed(list: AsyncIterable<unknown>, ended: (() => void) | undefined) {
  let iterator: AsyncIterator<unknown> | undefined
  const begun = () => {
    iterator ??= list[Symbol.asyncIterator]()
    return iterator
  }
  return {
    async next() {
      try {
        const { done, value } = await begun().next()
        if (done === true) ended?.()
        return done === true ? { done } : { done: false, value }
      } catch (error) {
        ended?.()
        throw error
      }
    },
    async return() {
      ended?.()
      await begun().return?.()
      return { done: true }
    }
  }
}
