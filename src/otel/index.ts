export type { Semconv } from './names.js'
export { otel, type OtelOptions } from './otel.js'
