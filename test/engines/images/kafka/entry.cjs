'use strict';
// As the official image: variables KAFKA_* are the broker's properties, and its folder is formatted once.
const { spawn, spawnSync } = require('node:child_process');
const { writeFileSync } = require('node:fs');

const { JAVA, CLUSTER_ID = '5L6g3nShT-eMCtK--X86sw', KAFKA_HEAP_OPTS = '-Xms256m -Xmx256m' } = process.env;
const config = '/tmp/server.properties';
const separators = { _: '.', __: '_', ___: '-' };
const properties = Object.entries(process.env)
  .filter(([name]) => name.startsWith('KAFKA_') && name !== 'KAFKA_HEAP_OPTS')
  .map(([name, value]) => {
    const key = name.slice('KAFKA_'.length).toLowerCase();
    return `${key.replace(/_{1,3}/g, (underscores) => separators[underscores])}=${value}\n`;
  });
writeFileSync(config, properties.join(''));

const flags = ['-XX:+UseSerialGC', '-XX:TieredStopAtLevel=1', '-Dorg.slf4j.simpleLogger.defaultLogLevel=warn'];
const java = (memory, program) => [...memory, ...flags, '-cp', '/opt/kafka/libs/*', ...program];
const format = ['format', '--ignore-formatted', '--cluster-id', CLUSTER_ID, '--config', config];
const formatted = spawnSync(JAVA, java(['-Xmx128m'], ['kafka.tools.StorageTool', ...format]), { stdio: 'inherit' });
if (formatted.status !== 0) process.exit(1);
const broker = spawn(JAVA, java(KAFKA_HEAP_OPTS.split(' '), ['kafka.Kafka', config]), { stdio: 'inherit' });
for (const signal of ['SIGTERM', 'SIGINT']) process.on(signal, () => broker.kill(signal));
broker.on('exit', (code) => process.exit(code ?? 1));
