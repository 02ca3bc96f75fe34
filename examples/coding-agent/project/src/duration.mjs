const units = { s: 1_000, m: 60_000, h: 3_600_000 }

/** The milliseconds of a text such as `90s`, `5m` or `1h30m`. */
export function parseDuration(text) {
  const match = /(\d+)([smh])/.exec(text)
  if (match === null) throw new Error(`'${text}' is not a duration.`)
  return Number(match[1]) * units[match[2]]
}
