// The scripted tool, with its result in each step, and a checksum of its executions.
const padding = 'x'.repeat(200)

export const resultOf = (step) => `notes/${step}.txt${padding}`

/** The checksum of runs with this many steps. Each step except the last calls the tool once. */
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
