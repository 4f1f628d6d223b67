/** A promise and the function that resolves it. */
export function latch<T = void>(): { readonly opened: Promise<T>; readonly open: (value: T) => void } {
  let open: (value: T) => void = () => undefined
  const opened = new Promise<T>(resolve => {
    open = resolve
  })
  return { opened, open }
}
