// Summary statistics, the median and the interquartile range.
const sorted = (values) => [...values].sort((a, b) => a - b)

/** The `part` quantile of the values. */
export const at = (values, part) => sorted(values)[Math.round((values.length - 1) * part)]

export const median = (values) => at(values, 0.5)

/** The interquartile range, as text. */
export const spread = (values, digits = 2) =>
  `${at(values, 0.25).toFixed(digits)}–${at(values, 0.75).toFixed(digits)}`
