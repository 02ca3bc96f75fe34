export type { Semconv } from './otel-metrics.js'
export { otel, type OtelOptions } from './otel.js'
