export type { Semconv } from './semconv-names.js'
export { otel, type OtelOptions } from './otel.js'
