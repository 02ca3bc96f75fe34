// The measurements, with the worker's case and the reader of its figure. Less is better in all of them.
const us = (value) => `${value.toFixed(value < 20 ? 1 : 0)} µs`
const size = (quick) => (quick ? { runs: 5, warmup: 10 } : { runs: 20, warmup: 40 })

export const measures = (quick) => [
  {
    title: 'CPU per step, streamed',
    options: { what: 'cpu', stream: true, steps: 50, ...size(quick) },
    show: us,
  },
  {
    title: 'CPU per step, not streamed',
    options: { what: 'cpu', stream: false, steps: 50, ...size(quick) },
    show: us,
  },
  {
    title: 'CPU per chunk',
    options: { what: 'cpu', chunks: 10_000, runs: quick ? 2 : 5, warmup: quick ? 1 : 5 },
    show: us,
  },
  {
    title: '200 parallel runs, time',
    options: { what: 'concurrent', steps: 10, runs: 200, warmup: quick ? 20 : 100 },
    show: (seconds) => `${(1 / seconds).toFixed(0)} runs/s`,
  },
  {
    title: 'heap of a waiting run',
    options: { what: 'parked', steps: 50, runs: quick ? 200 : 1000 },
    flags: ['--expose-gc'],
    show: (bytes) => `${(bytes / 1024).toFixed(1)} KiB`,
  },
  {
    title: 'CPU per step, first 200 steps',
    options: { what: 'cpu', steps: 10, runs: 20 },
    show: us,
  },
  {
    title: 'import and first run',
    options: { what: 'start', steps: 2 },
    show: (ms) => `${ms.toFixed(0)} ms`,
  },
]
