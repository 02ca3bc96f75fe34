/**
 * The id of a call in the message with this number: unchanged, or with that number where an earlier message has the id.
 * Several providers count calls from `call_0` in every response. Kimi's ids end in a count, so that count changes.
 */
export function nameCall(id: string, messageNumber: number, used: ReadonlySet<string>): string {
  let name = id
  while (used.has(name)) {
    const count = /:(\d{1,9})$/.exec(name)?.[1]
    name =
      count === undefined
        ? `${name}_${messageNumber}`
        : `${name.slice(0, -count.length)}${Number(count) + messageNumber}`
  }
  return name
}
