-- One page of what is remembered: memories with thoughts, the last filed first, a row for each call.
SELECT json_group_array(json_array(number, nth, call, tenant, touched, memo)) FROM (
    SELECT
        m.number, coalesce(c.key, 0) AS nth, coalesce(c.value, '') AS call,
        t.tenant, printf('%!.17g', s.touched) AS touched, m.memo
    FROM memories AS m
    CROSS JOIN sessions AS s ON s.number = m.session
    CROSS JOIN tenants AS t ON t.number = s.tenant
    LEFT JOIN json_each(m.memo, '$.calls') AS c
    WHERE m.entries > 0
      AND (:tenant IS NULL OR t.tenant = :tenant)
      AND (:provider IS NULL OR m.provider = :provider)
      AND (:model IS NULL OR m.model = :model)
      AND (:call IS NULL OR c.value = :call)
      AND m.number <= :number AND (m.number < :number OR c.key > :nth)
    ORDER BY m.number DESC, nth LIMIT :limit OFFSET :offset
)
