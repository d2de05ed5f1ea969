// Where a store in S3 is: what its address says, and what the machine says where the address is silent.

import { inputError } from '../errors.ts';
import { endpointFault, parseS3Address } from './s3-address.ts';
import type { S3Place } from './s3-client.ts';

/** What the machine says about S3: an address may say otherwise. */
export interface S3Settings {
  endpoint: string | null;
  region: string | null;
}

/** What an address and the machine say together. Exit 2 for what nobody can mean. */
export function s3PlaceOf(text: string, settings: S3Settings): S3Place {
  const parsed = parseS3Address(text);
  if ('fault' in parsed)
    throw inputError('store_address', `the store ${text} ${parsed.fault}`, 's3://bucket/prefix, or a folder’s path');
  const { address } = parsed;
  const endpoint = address.endpoint ?? settings.endpoint;
  const fault = endpoint === null ? null : endpointFault(endpoint);
  if (fault !== null)
    throw inputError('store_endpoint', `S3_ENDPOINT=${endpoint} ${fault}`, 'as in https://s3.example.com:9000');
  // Servers of one's own seldom have a host name a bucket, and take any region that is named.
  const pathStyle = address.style === null ? endpoint !== null : address.style === 'path';
  const region = address.region ?? settings.region ?? (endpoint === null ? null : 'us-east-1');
  return { address, endpoint, region, pathStyle };
}
