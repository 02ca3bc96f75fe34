/**
 * Loaded before the service. Configures the export of spans and metrics. The SDK reads OTEL_EXPORTER_OTLP_ENDPOINT and the other
 * standard variables.
 */
import { NodeSDK } from '@opentelemetry/sdk-node'

if (process.env['OTEL_EXPORTER_OTLP_ENDPOINT']) {
  const sdk = new NodeSDK()
  sdk.start()
  process.once('beforeExit', () => void sdk.shutdown())
}
