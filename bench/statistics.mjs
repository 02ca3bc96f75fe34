// What the measurements say in the end: medians, and how far the middle half spreads.
const sorted = (values) => [...values].sort((a, b) => a - b)

/** The value below which `part` of all values lie. */
export const at = (values, part) => sorted(values)[Math.round((values.length - 1) * part)]

export const median = (values) => at(values, 0.5)

/** The middle half, as text. */
export const spread = (values, digits = 2) =>
  `${at(values, 0.25).toFixed(digits)}–${at(values, 0.75).toFixed(digits)}`
