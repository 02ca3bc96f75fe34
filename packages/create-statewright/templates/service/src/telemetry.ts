/** Loaded before the service: where spans and metrics go. The SDK reads OTEL_EXPORTER_OTLP_ENDPOINT and the other usual variables. */
import { NodeSDK } from '@opentelemetry/sdk-node'

if (process.env['OTEL_EXPORTER_OTLP_ENDPOINT']) {
  const sdk = new NodeSDK()
  sdk.start()
  process.once('beforeExit', () => void sdk.shutdown())
}
