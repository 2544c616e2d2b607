import { readFile } from 'node:fs/promises';
import { ConfigError } from '@gpuwhisk/common/config';
import type { Config } from '@gpuwhisk/common/config';
import type { KafkaBusOptions } from '@gpuwhisk/engines/kafka/kafka-bus';

/** How the configured brokers are reached. Rejects with ConfigError where a file of `kafka.tls` cannot be read. */
export async function kafkaConnection({
  brokers,
  tls,
  sasl,
}: NonNullable<Config['kafka']>): Promise<KafkaBusOptions['connection']> {
  const read = async (name: string, path: string | undefined): Promise<Record<string, string>> => {
    if (path === undefined) return {};
    try {
      return { [name]: await readFile(path, 'utf8') };
    } catch (error) {
      throw new ConfigError(`kafka.tls.${name}: ${(error as Error).message}`);
    }
  };
  const files = tls && (await Promise.all([read('ca', tls.ca), read('cert', tls.cert), read('key', tls.key)]));
  return {
    brokers: brokers.split(','),
    clientId: 'gpuwhisk',
    ...(files && { ssl: Object.assign({}, ...files) as Record<string, string> }),
    ...(sasl && { sasl }),
  };
}
