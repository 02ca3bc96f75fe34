/** Longest delay that a timer of the platform takes; a longer one would fire at once. */
export const longestTimer = 2_147_483_647

/** The work's outcome, or a rejection (a DOMException `TimeoutError`) when it takes longer than `ms`. */
export function within<Result>(ms: number, work: Promise<Result>): Promise<Result> {
  let timer: ReturnType<typeof setTimeout>
  const late = new Promise<never>((_, reject) => {
    const expire = (): void => {
      reject(new DOMException(`It took longer than ${ms} ms.`, 'TimeoutError'))
    }
    timer = setTimeout(expire, Math.min(ms, longestTimer))
  })
  return Promise.race([work, late]).finally(() => {
    clearTimeout(timer)
  })
}
