// The tool of the script: what it gives in each step, and the sum that tells that it ran as often as it should.
const padding = 'x'.repeat(200)

export const resultOf = (step) => `notes/${step}.txt${padding}`

/** What runs of that many steps add up to: each calls the tool once in all steps but the last. */
export const sumOf = (steps, runs) => (runs * steps * (steps - 1)) / 2

export function countingTool() {
  let sum = 0
  return {
    sum: () => sum,
    async read({ path }) {
      sum += Number(/^notes\/(\d+)\.txt$/.exec(path)[1]) + 1
      return path + padding
    },
  }
}
